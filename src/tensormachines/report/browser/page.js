"use strict";
/* For use in the console: tensormachine.predict({area: 50, district: "north"}) */
window.tensormachine = {
  outputs: values => model.outputs(model.encode(values)),
  predict(values) {
    const outputs = this.outputs(values);
    if (hasLabels) return outputs.map(z => Number(z > 0));
    const predicted = model.predictions(outputs);
    if (!classifies) return predicted.length === 1 ? predicted[0] : predicted;
    const likely = model.probabilities(outputs);
    return report.classes[likely.indexOf(Math.max(...likely))];
  },
  probabilities: values => model.probabilities(model.outputs(model.encode(values))),
};

buildInputs();
buildExamples();
state.row = numbers(report.typical);
if (state.output === null) {
  const likely = model.probabilities(model.outputs(state.row));
  state.output = likely.indexOf(Math.max(...likely));
}
buildOutputs();
buildImportance();
show();
buildDiagnostics();
