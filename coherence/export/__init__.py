"""Out of the process: records are sent to other systems; nothing here measures or decides."""
