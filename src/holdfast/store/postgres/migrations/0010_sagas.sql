-- sagas: to be written
SELECT 1;
