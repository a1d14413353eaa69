"""Numbers, times and days that follow from what was given: each beside one that does not."""

from __future__ import annotations

import pytest

from detect.judging import flaws

ORDER = "item;qty;price\nPump;2;149.00\nHose 3m;4;12.50\nClamp;10;0.85\nshipping;;9.90"
USAGE = "month;kwh\n2024-01;412\n2024-02;388\n2024-03;351\n2024-04;290\n2024-05;244\n2024-06;201"


@pytest.mark.parametrize(
    ("source", "right", "wrong"),
    [
        (
            ORDER,
            "Pump 298.00, hoses 50.00, clamps 8.50: 356.50, with shipping 366.40.",
            "Pump 298.00, hoses 50.00, clamps 8.50: 358.50, with shipping 366.40.",
        ),
        (
            USAGE,
            "In the first quarter you used 1,151 kWh, in the second 735.",
            "In the first quarter you used 1,151 kWh, in the second 753.",
        ),
        (USAGE, "Consumption fell by 51 % from January to June.", "Consumption fell by 61 % from January to June."),
        ("height_cm: 183", "He is 1.83 m tall, about 6.0 ft.", "He is 1.83 m tall, about 6.6 ft."),
        ("oven: 180 °C", "Bake at 356 °F.", "Bake at 375 °F."),
        ("size: 1536 MB", "It needs 1.5 GB.", "It needs 2.5 GB."),
        ("dep 06:42 Lyon, arr 08:39 Paris", "The trip takes 1 h 57.", "The trip takes 1 h 47."),
        ("duration_min: 135", "Der Film dauert 2 Stunden und 15 Minuten.", "Der Film dauert 2 Stunden und 25 Minuten."),
        ("start 19:30, runtime 128 min", "It ends at 9:38 pm.", "It ends at 9:48 pm."),
        ("start 23:15\nend 01:05", "It took 1 hour 50 minutes.", "It took 1 hour 15 minutes."),
        (
            "started 2025-03-01T10:00:00Z\nfinished 2025-03-01T10:07:42Z",
            "The job took 7 minutes 42 seconds.",
            "The job took 9 minutes 42 seconds.",
        ),
        ("10 km in 48:30", "That is 4:51 per km.", "That is 4:31 per km."),
        ("会议 14:30 开始, 90 分钟", "会议下午2点30分开始,4点结束。", "会议下午2点30分开始,5点结束。"),
        ("営業 10時〜19時30分", "19時30分まで営業しています。", "19時45分まで営業しています。"),
        (
            "bought 2024-11-05, return within 30 days",
            "You can return it until 5 December 2024.",
            "You can return it until 15 December 2024.",
        ),
        (
            "Vertragsbeginn 01.04.2024, Laufzeit 24 Monate",
            "Der Vertrag läuft 24 Monate, also bis zum 31. März 2026.",
            "Der Vertrag läuft 24 Monate, also bis zum 31. Mai 2026.",
        ),
        ("Mail of 12 March: the parcel comes on the 19th.", "It comes on 19 March.", "It comes on 18 March."),
        ("2026-02-10||2026-03-01", "That is 19 days later.", "That is 29 days later."),
        (
            "votes: Kim 1204, Lopez 986, Ray 310",
            "Kim won 48.2% of the 2,500 votes.",
            "Kim won 42.8% of the 2,500 votes.",
        ),
        ("fuel: 38.4 l, km: 612", "It used 6.3 l per 100 km.", "It used 7.3 l per 100 km."),
        ("price 89.00, discount 15%", "You pay 75.65.", "You pay 76.55."),
        (
            "net 1,240.00, VAT 19 %",
            "With VAT it is 1,475.60, of which 235.60 is tax.",
            "With VAT it is 1,457.60, of which 235.60 is tax.",
        ),
        ("How much are £200?||rate: 1 EUR = 0.8432 GBP", "£200 are about €237.19.", "£200 are about €273.19."),
        ("0 22 * * 5 /bin/backup", "It runs on Fridays at 10 pm.", "It runs on Fridays at 11 pm."),
        (
            "population 2010: 48,210\npopulation 2020: 53,877",
            "It grew by 5,667 people, or 11.8 %.",
            "It grew by 5,667 people, or 18.1 %.",
        ),
        ("invoice 2,345.60 due\npaid 1,500.00", "You still owe 845.60.", "You still owe 854.60."),
    ],
)
def test_judge_what_follows_from_what_was_given(source: str, right: str, wrong: str) -> None:
    assert flaws(source, right) == []
    assert flaws(source, wrong) != []
