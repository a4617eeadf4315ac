"""What users import: workflow classes, tool and rule decorators, and the clients. It imports the data shapes alone."""
