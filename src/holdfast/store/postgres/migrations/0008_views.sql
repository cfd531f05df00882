-- views: to be written
SELECT 1;
