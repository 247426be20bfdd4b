"""The comparison page in headless Chromium: every figure of the comparison is on it, and no name runs as code."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dividemix.judging.issue_agreement import IssueAgreement
from dividemix.report.comparison_page import write_comparison
from dividemix.runs.comparison import ComparedRun, Comparison

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium: pip install selenium")
CHROMIUM, DRIVER = shutil.which("chromium") or shutil.which("google-chrome"), shutil.which("chromedriver")
NONE = "\u2013"
HOSTILE = "runs/</script><img src=x onerror=document.title=1>"


def invented() -> Comparison:
    """Eight runs, more than there are colours; the last is not finished and has no label issues."""
    runs: list[ComparedRun] = [
        {
            "letter": "ABCDEFGH"[i],
            "path": HOSTILE if i == 0 else f"runs/{i}",
            "method": f"method{i}",
            "num_epochs": 3,
            "finished": i < 7,
            "seconds": 3725.0 * (i + 1),
            "machine": "a machine",
            "final_acc": 50.0 + i,
            "best_acc": 60.0 + i,
            "last_acc": None,
            "clean_auc": None,
            "curves": {"test_acc": [(1, 40.0), (2, 45.0 + i), (3, 50.0 + i)]},
        }
        for i in range(8)
    ]
    runs[1]["noise_by_class"] = {"cat & <b>dog</b>": 0.25}
    agreed: IssueAgreement = {
        "num_common": 9,
        "num_same_label": 8,
        "num_both": 3,
        "num_first": 2,
        "num_second": 1,
        "overlap": 0.5,
        "rank_correlation": -0.25,
        "same_suggestion": None,
    }
    return {
        "runs": runs,
        "settings": {"lr": [0.1, *[None] * 7], "flip": [True, *[False] * 7]},
        "pairs": [{"first": "A", "second": "B", "agreement": agreed}],
        "flagged_by": [5, 2, 1],
    }


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.mark.slow
@pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's packages chromium and chromium-driver")
def test_the_page_shows_every_part_without_an_error(browser: Any, tmp_path: Path) -> None:
    write_comparison(invented(), tmp_path / "compare.html")
    browser.get((tmp_path / "compare.html").as_uri())
    assert browser.get_log("browser") == []
    assert browser.title == "8 runs compared \u2013 DivideMix"

    def text(selector: str) -> str:
        return str(browser.execute_script("return document.querySelector(arguments[0]).innerText", selector))

    def cells(selector: str) -> list[list[str]]:
        rows_of = "[...document.querySelectorAll(arguments[0] + ' tr')]"
        script = f"return {rows_of}.map(row => [...row.cells].map(cell => cell.innerText))"
        rows: list[list[str]] = browser.execute_script(script, selector)
        return rows

    assert HOSTILE in text(".runs")
    assert "method7, not finished" in text(".runs")
    headings, *rows = cells("#results")
    assert "Kept" not in headings  # a column that no run has
    second = dict(zip(headings, rows[1], strict=True))
    assert (second["Final"], second["Time"], second["Cost, A = 1"]) == ("51.00", "2:04:10", "2.00")
    assert cells("#settings")[1:] == [["lr", "0.1", *[NONE] * 7], ["flip", "true", *["false"] * 7]]
    assert cells("#agreement")[1] == ["A and B", "8", "3", "2", "1", "50\u00a0%", "-0.250", NONE]
    assert "flagged by 1 run" in text(".shares")
    assert cells("#noise")[1] == ["cat & <b>dog</b>", "25\u00a0%"]
    assert browser.execute_script("return document.querySelectorAll('#curves polyline').length") == 8
    assert "Trained on a machine." in text(".machines")
