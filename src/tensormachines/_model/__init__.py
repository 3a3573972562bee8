"""What a Tensor Machine is: layout, losses, bases, kernel, machine, description."""
