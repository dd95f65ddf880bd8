"""Reports that people pass on: a page for a manager, a workbook."""
