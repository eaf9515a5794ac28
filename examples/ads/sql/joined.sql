-- One row per event, with what all eight sources know about it at that time.
WITH level AS (
    SELECT *, max(price) OVER (PARTITION BY product) AS highest FROM prices
), known AS ( -- demand is by the hour, with gaps: the last value known in each hour
    SELECT h.hour, d.visitors, d.degrees
    FROM (SELECT DISTINCT date_trunc('hour', ts) AS hour FROM clean) h ASOF JOIN demand d ON h.hour >= d.hour
), seen AS (
    SELECT e.event, s."user", e.session, e.product, e.ts, e.position, e.dwell_ms, e.query, e.campaign, s.device,
           row_number() OVER of_user - 1 AS user_events, -- earlier ones
           row_number() OVER of_session - 1 AS session_events,
           epoch(e.ts)::BIGINT - lag(epoch(e.ts)::BIGINT) OVER of_user AS since_last -- seconds
    FROM clean e JOIN sessions s USING (session)
    WINDOW of_user AS (PARTITION BY s."user" ORDER BY e.ts, e.event),
           of_session AS (PARTITION BY e.session ORDER BY e.ts, e.event)
)
SELECT e.event, e."user", e.ts,
       hour(e.ts) AS hour, isodow(e.ts) AS weekday,
       e.position, e.dwell_ms, e.user_events, e.session_events, e.since_last,
       len(regexp_extract_all(e.query, '[^ ,\n]+')) AS query_words,
       e.device, u.country, u.age, u.plan, date_diff('day', u.signup, e.ts::DATE) AS account_days,
       p.category, p.brand, l.price::DOUBLE AS price, (l.price / l.highest)::DOUBLE AS price_level,
       d.visitors, d.degrees,
       coalesce(c.channel, 'none') AS channel, c.budget::DOUBLE AS budget,
       date_diff('day', c.first_day, e.ts::DATE) AS campaign_days,
       b.bought
FROM seen e
JOIN users u USING ("user")
JOIN products p USING (product)
JOIN level l ON l.product = e.product AND e.ts >= l.since AND (e.ts < l.until OR l.until IS NULL)
JOIN known d ON d.hour = date_trunc('hour', e.ts)
LEFT JOIN campaign c USING (campaign)
JOIN labels b ON b.event = e.event
