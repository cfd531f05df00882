-- cache: to be written
SELECT 1;
