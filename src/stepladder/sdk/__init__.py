"""What users import. It stands beside the house and reaches down to the data shapes alone."""
