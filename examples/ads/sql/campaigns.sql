-- The table that people keep by hand: one spelling of everything, amounts as numbers, each campaign once.
WITH tidy AS (
    SELECT upper(trim(campaign)) AS campaign,
           lower(trim(channel)) AS channel,
           TRY_CAST(regexp_replace(budget, '[^0-9.]', '', 'g') AS DECIMAL(12, 2)) AS budget, -- NULL for n/a
           coalesce(try_strptime(trim(first_day), '%Y-%m-%d'), try_strptime(trim(first_day), '%d.%m.%Y'))::DATE AS first_day
    FROM campaigns
)
SELECT DISTINCT campaign, channel, budget, first_day
FROM tidy
WHERE campaign <> ''
