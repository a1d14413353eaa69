"""Reading texts, calls and results: pure functions and small folds that find hijacks, unsupported values, loops."""
