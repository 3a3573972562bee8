"""The paper's experiments: what is fitted (methods), how (run), and the results (report)."""
