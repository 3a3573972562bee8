"""The compiled kernel and that of NumPy, and every kind of model that they evaluate."""

from functools import partial

from tensormachines._model import kernel, numpy_kernel
from tensormachines._model.layout import AnovaLayout, Layout

KERNELS = {
    "native": (kernel.value_and_gradient, kernel.outputs, kernel.terms),
    "numpy": (numpy_kernel.value_and_gradient, numpy_kernel.outputs, numpy_kernel.terms),
}
MODELS = {
    "tensor": Layout,
    "anova": AnovaLayout,
    "shared": partial(Layout, shared=True),
    "shared anova": partial(AnovaLayout, shared=True),
}
