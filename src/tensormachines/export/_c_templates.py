"""The code of an exported C file; `c` writes the data that it reads. NAME is the name of the model."""

INCLUDES = """
#include <math.h>
#include <string.h>
"""

_ROW = "const double *numbers, const char *const *categories"

PROTOTYPES = {
    "identity": f"""
/* NAME_N_OUTPUTS predictions. */
void NAME_predict({_ROW}, double *predictions);
""",
    "logistic": f"""
/* The number of the class in NAME_classes, -1 if a number is missing that must not be; \
NAME_N_CLASSES probabilities, in their order. */
int NAME_predict({_ROW});
void NAME_predict_proba({_ROW}, double *probabilities);
""",
}
PROTOTYPES["softmax"] = PROTOTYPES["logistic"]
PROTOTYPES["log"] = PROTOTYPES["identity"]
PROTOTYPES["sorted"] = f"""
/* NAME_N_OUTPUTS predictions: the quantiles of the levels in NAME_quantiles. */
void NAME_predict({_ROW}, double *predictions);
"""
PROTOTYPES["sigmoid"] = f"""
/* NAME_N_OUTPUTS labels, 1 or 0, -1 if a number is missing that must not be; and their probabilities. */
void NAME_predict({_ROW}, int *labels);
void NAME_predict_proba({_ROW}, double *probabilities);
"""

AFFINE = """
/* The row t in its basis, and its linear forms. */
static void NAME_forms(const double *numbers, const char *const *categories, double *t, double *forms)
{
    int j, f;
    (void) categories;
    for (j = 0; j < NAME_N_NUMBERS; j++) {
        t[j] = (numbers[j] - NAME_center[j]) * NAME_scale[j];
        /* clip */
    }
    /* rest */
    for (f = 0; f < NAME_N_FORMS; f++)
        forms[f] = 0.0;
    for (j = 0; j < WIDTH; j++)
        for (f = 0; f < NAME_N_FORMS; f++)
            forms[f] += t[j] * NAME_weights[j][f];
}
"""

CLIP = """        if (t[j] > LIMIT)
            t[j] = LIMIT;
        else if (t[j] < -LIMIT)
            t[j] = -LIMIT;
"""

UNIT_ROW = """    {
        double squares = 0.0;
        for (j = 0; j < WIDTH; j++)
            squares += t[j] * t[j];
        if (squares != 0.0)
            for (j = 0; j < WIDTH; j++)
                t[j] /= sqrt(squares);
    }
"""

ADD = """
static void NAME_add(double share, const double *row, double *forms)
{
    int f;
    for (f = 0; f < NAME_N_FORMS; f++)
        forms[f] += share * row[f];
}
"""

ADD_NUMBER = """
/* Straight lines between the knots; the last row of the table is for missing numbers. */
static void NAME_add_number(double x, const double *knots, int n, const double (*table)[NAME_N_FORMS], \
double *forms)
{
    int low = 0, high = n - 1;
    double above;
    if (isnan(x)) {
        NAME_add(1.0, table[n], forms);
        return;
    }
    if (n == 1) {
        NAME_add(1.0, table[0], forms);
        return;
    }
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        if (knots[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    above = (0.5 * x - 0.5 * knots[low]) / (0.5 * knots[high] - 0.5 * knots[low]); \
/* halves do not overflow */
    above = above < 0.0 ? 0.0 : above > 1.0 ? 1.0 : above;
    NAME_add(1.0 - above, table[low], forms);
    NAME_add(above, table[high], forms);
}
"""

LEVEL = """
static int NAME_level(const char *text, const char *const *levels, int n, int unknown, int missing)
{
    int level;
    if (text == NULL)
        return missing;
    for (level = 0; level < n; level++)
        if (strcmp(text, levels[level]) == 0)
            return level;
    return unknown;
}
"""

SPLINE = """
static void NAME_forms(const double *numbers, const char *const *categories, double *forms)
{
    int f;
    (void) numbers;
    (void) categories;
    for (f = 0; f < NAME_N_FORMS; f++)
        forms[f] = NAME_offset[f];
    /* columns */
}
"""

OUTPUTS = """
static void NAME_outputs(const double *numbers, const char *const *categories, double *outputs)
{
    double t[WIDTH], forms[NAME_N_FORMS];
    const double *form = forms + NAME_N_OUTPUTS;
    int k;
    NAME_forms(numbers, categories, t, forms);
    for (k = 0; k < NAME_N_OUTPUTS; k++)
        outputs[k] = NAME_intercept[k] + forms[k];
    /* terms */
    (void) form;
}
"""

PRODUCTS = """    for (k = 0; k < NAME_N_OUTPUTS; k++) {
        int i, j;
        for (i = 0; i < NAME_n_terms_POWER[k]; i++) {
            double product = 1.0;
            for (j = 0; j < POWER; j++)
                product *= *form++;
            outputs[k] += product;
        }
    }
"""

SHARED_PRODUCTS = """    {
        int i, j;
        for (i = 0; i < COUNT; i++) {
            double product = 1.0;
            for (j = 0; j < POWER; j++)
                product *= *form++;
            for (k = 0; k < NAME_N_OUTPUTS; k++)
                outputs[k] += NAME_term_weights_POWER[k][i] * product;
        }
    }
"""

ANOVA = """    for (k = 0; k < SETS; k++) {
        int i, j, p;
        for (i = 0; i < RANK; i++) {
            double sums[POWER + 1] = {1.0}; /* of the products of all sets of 0, 1, ... columns, \
one column after the other */
            for (j = 0; j < WIDTH; j++)
                for (p = POWER; p > 0; p--)
                    sums[p] += t[j] * NAME_factors_POWER[k][i][j] * sums[p - 1];
            /* add */
        }
    }
"""

ANOVA_ADD = """            outputs[k] += sums[POWER];
"""

SHARED_ANOVA_ADD = """            for (j = 0; j < NAME_N_OUTPUTS; j++)
                outputs[j] += NAME_term_weights_POWER[j][i] * sums[POWER];
"""

PREDICTIONS = {
    "identity": f"""
void NAME_predict({_ROW}, double *predictions)
{{
    NAME_outputs(numbers, categories, predictions);
}}
""",
    "log": f"""
void NAME_predict({_ROW}, double *predictions)
{{
    int k;
    NAME_outputs(numbers, categories, predictions);
    for (k = 0; k < NAME_N_OUTPUTS; k++)
        predictions[k] = exp(predictions[k] > NAME_largest[k] ? NAME_largest[k] : predictions[k]);
}}
""",
    "sorted": f"""
void NAME_predict({_ROW}, double *predictions)
{{
    int j, k;
    NAME_outputs(numbers, categories, predictions);
    for (k = 1; k < NAME_N_OUTPUTS; k++)
        for (j = k; j > 0 && predictions[j - 1] > predictions[j]; j--) {{
            double larger = predictions[j - 1];
            predictions[j - 1] = predictions[j];
            predictions[j] = larger;
        }}
}}
""",
    "logistic": f"""
int NAME_predict({_ROW})
{{
    double output;
    NAME_outputs(numbers, categories, &output);
    return isnan(output) ? -1 : output > 0.0;
}}

void NAME_predict_proba({_ROW}, double *probabilities)
{{
    double output, small;
    NAME_outputs(numbers, categories, &output);
    small = exp(-fabs(output));
    probabilities[output > 0.0] = 1.0 / (1.0 + small);
    probabilities[!(output > 0.0)] = small / (1.0 + small);
}}
""",
    "sigmoid": f"""
void NAME_predict({_ROW}, int *labels)
{{
    double outputs[NAME_N_OUTPUTS];
    int k;
    NAME_outputs(numbers, categories, outputs);
    for (k = 0; k < NAME_N_OUTPUTS; k++)
        labels[k] = isnan(outputs[k]) ? -1 : outputs[k] > 0.0;
}}

void NAME_predict_proba({_ROW}, double *probabilities)
{{
    int k;
    NAME_outputs(numbers, categories, probabilities);
    for (k = 0; k < NAME_N_OUTPUTS; k++)
        probabilities[k] = 1.0 / (1.0 + exp(-probabilities[k]));
}}
""",
    "softmax": f"""
int NAME_predict({_ROW})
{{
    double outputs[NAME_N_OUTPUTS];
    int k, best = 0;
    NAME_outputs(numbers, categories, outputs);
    for (k = 0; k < NAME_N_OUTPUTS; k++) {{
        if (isnan(outputs[k]))
            return -1;
        if (outputs[k] > outputs[best])
            best = k;
    }}
    return best;
}}

void NAME_predict_proba({_ROW}, double *probabilities)
{{
    double largest, sum = 0.0;
    int k;
    NAME_outputs(numbers, categories, probabilities);
    largest = probabilities[0];
    for (k = 1; k < NAME_N_OUTPUTS; k++)
        if (probabilities[k] > largest)
            largest = probabilities[k];
    for (k = 0; k < NAME_N_OUTPUTS; k++)
        sum += probabilities[k] = exp(probabilities[k] - largest);
    for (k = 0; k < NAME_N_OUTPUTS; k++)
        probabilities[k] /= sum;
}}
""",
}
