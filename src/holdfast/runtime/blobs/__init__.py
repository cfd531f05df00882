"""`hf.blobs`: files with rows in the program's database, their bytes in a folder or an S3."""
