"""OpenCode: the plug-in that tells what its sessions do, and what that means for their agents."""
