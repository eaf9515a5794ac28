-- One row for each event: what was sent twice is one event, an amount that is not known is the median of its page.
SELECT
	e.user,
	e.ts,
	e.page,
	coalesce(e.amount, p.amount) AS amount,
	CAST(e.amount IS NULL AS INTEGER) AS amount_unknown,
	u.country,
	2026 - u.born AS age
FROM (SELECT user, ts, page, max(amount) AS amount FROM events GROUP BY user, ts, page) AS e
LEFT JOIN users AS u USING (user)
JOIN (SELECT page, median(amount) AS amount FROM events GROUP BY page) AS p USING (page)
