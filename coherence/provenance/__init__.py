"""Where what an agent says and does comes from: its goal, what its tools returned, or nowhere."""
