// The one copy of what evaluate.hpp defines.
#include "evaluate.hpp"

namespace tensormachines {

template void evaluate<float>(const Job<float>&, Team&, Totals&, float*, Room&);
template void evaluate<double>(const Job<double>&, Team&, Totals&, double*, Room&);

}  // namespace tensormachines
