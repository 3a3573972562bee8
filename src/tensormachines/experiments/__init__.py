"""The paper's experiments: what is fitted (methods), how (run), and what comes of it (report)."""
