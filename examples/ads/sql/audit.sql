-- Each loaded event is counted once: kept by clean.sql, or left out for a reason.
SELECT reason, count(*) AS events FROM rejected GROUP BY reason
UNION ALL
SELECT 'kept', count(*) FROM clean
