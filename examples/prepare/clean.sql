-- One row for each event of a known user: what was sent twice is one event, an amount that is not known is that of the
-- page's median.
SELECT
	e.user,
	e.ts,
	e.page,
	ln(1 + coalesce(e.amount, p.amount)) AS amount,
	CAST(e.amount IS NULL AS INTEGER) AS amount_unknown,
	hour(e.ts) AS hour,
	u.country,
	2026 - u.born AS age
FROM (SELECT DISTINCT user, ts, page, amount FROM events) AS e
JOIN users AS u USING (user)
JOIN (SELECT page, median(amount) AS amount FROM events GROUP BY page) AS p USING (page)
