"""The commands of the command line, a file each; they import what takes time only when they run."""
