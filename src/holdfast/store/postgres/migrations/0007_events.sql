-- events: to be written
SELECT 1;
