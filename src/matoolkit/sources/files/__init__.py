"""Lists that people keep: CSV files and Excel workbooks below one folder (rule U4)."""
