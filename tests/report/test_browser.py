"""The page in a real browser: headless Chromium, driven as a person would drive it, by keyboard above all.

The oracle is what was done: the decisions made must be the ones downloaded, and the ones `relabel` applies.
Needs Debian's packages chromium and chromium-driver, and selenium; skipped where they are absent.
"""

import csv
import dataclasses
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from invented import fashion_content, fashion_shown, invented_content
from PIL import Image

from dividemix.data.readers.table import list_table
from dividemix.relabel.corrections import read_corrections
from dividemix.relabel.relabel import Relabelled, relabel
from dividemix.relabel.stored_review import Sample, StoredReview
from dividemix.report.content import PageContent
from dividemix.report.data_map import data_map
from dividemix.report.page import render
from dividemix.report.pictures import Pictures
from dividemix.report.review_server import ReviewServer
from dividemix.report.shown import Shown, image, row, text
from dividemix.report.thumbnails import encode

selenium = pytest.importorskip("selenium", reason="needs selenium: pip install selenium")
from selenium import webdriver  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs Debian's packages chromium and chromium-driver"),
]

HOSTILE = (
    "<script>alert(1)</script>",
    '</script><img src="x" onerror="document.title=1">',
    "quotes \" and ' and, commas; &amp; =1+1",
    "🐱‍👓 emoji",
    "قط أسود",
    "\u202eoverride\u2028separator",
    "long " * 40 + "end",
)
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --window-size=1280,800"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    assert CHROMIUM is not None
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(60)
    yield driver
    driver.quit()


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Opens a page made of the content; afterwards nothing may have been complained of or asked from the network."""
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)  # what was before is none of ours
    opened = []

    def open_content(content: PageContent, show: Callable[[int], Shown | None]) -> None:
        page = tmp_path / "report.html"
        page.write_text(render(content, show), encoding="utf-8")
        behaviour = {"behavior": "allow", "downloadPath": str(tmp_path)}
        browser.execute_cdp_cmd("Browser.setDownloadBehavior", behaviour)
        media(browser, 1280, 800, dark=False)
        browser.get(page.as_uri())
        opened.append(page.as_uri())

    yield open_content
    assert browser.get_log("browser") == []
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"}
    pictures = tmp_path.as_uri()  # the page may show an original that is on the disk
    others = {url for url in urls if not url.startswith(("data:image/", "blob:null", "blob:file:"))}
    assert {url for url in others if not (url.startswith(pictures) and url.endswith(".png"))} == set(opened)


def media(browser: Any, width: int, height: int, *, dark: bool) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    still = {"name": "prefers-reduced-motion", "value": "reduce"}  # so that nothing moves under the mouse
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme, still]})


def press(browser: Any, *keys: str) -> None:
    for key in keys:
        browser.switch_to.active_element.send_keys(key)


def button(browser: Any, text: str) -> Any:
    return browser.find_element(By.XPATH, f"//button[contains(., '{text}')]")


def focused(browser: Any) -> int:
    """The index of the sample whose card has the focus."""
    return int(browser.execute_script("return document.activeElement.sample?.index ?? -1"))


def shown(browser: Any) -> list[dict[str, Any]]:
    """The samples that pass the filters, in their order."""
    found: list[dict[str, Any]] = browser.execute_script("return view.samples")
    return found


def progress(browser: Any) -> str:
    return str(browser.find_element(By.CLASS_NAME, "progress-text").text)


def downloaded(browser: Any, folder: Path) -> list[dict[str, str]]:
    file = folder / "corrections.csv"
    file.unlink(missing_ok=True)
    button(browser, "Download corrections").click()
    deadline = time.monotonic() + 20
    while not file.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, strict=True))


def hostile_content(num_samples: int = 120) -> PageContent:
    true = np.arange(num_samples) % len(HOSTILE)
    paths = tuple(f'<b onclick="x">{i}</b>/قط, "{i}".png' for i in range(num_samples))
    content = invented_content(true, HOSTILE, title=HOSTILE[1], paths=paths, with_truth=True)
    return dataclasses.replace(content, facts=[(text, text) for text in HOSTILE], choices=[(HOSTILE[0],) * 3])


def tiny_picture(i: int) -> Shown | None:
    return image(encode(np.full((8, 8, 3), 40 + i % 200, np.uint8)))


def test_a_review_by_keyboard_survives_a_reload_and_becomes_a_corrected_table(
    browser: Any, open_page: Callable[..., None], tmp_path: Path
) -> None:
    content = hostile_content()
    assert content.paths is not None
    table = tmp_path / "labels.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        rows = [(path, HOSTILE[label]) for path, label in zip(content.paths, content.labels, strict=True)]
        csv.writer(file).writerows([("path", "label"), *rows])
    open_page(content, tiny_picture)

    browser.execute_script("document.querySelector('#review').scrollIntoView()")
    press(browser, "j")
    samples = shown(browser)
    different = [sample["given"] != sample["suggested"] for sample in samples[:6]]
    assert all(different), "invented content should doubt the worst labels"
    assert focused(browser) == samples[0]["index"]
    press(browser, "k", "a", "s", "c", "emoji", Keys.ENTER)
    press(browser, "c", "a new class", Keys.ENTER)
    press(browser, "A")
    assert progress(browser).startswith("6 of ")
    press(browser, "u")  # the last one is open again, and current
    assert progress(browser).startswith("5 of ")
    assert focused(browser) == samples[5]["index"]
    press(browser, Keys.ARROW_LEFT, Keys.ARROW_LEFT, "k")  # another mind about the fourth
    assert browser.find_element(By.ID, "announcer").text.startswith("kept. 5 of ")

    browser.refresh()
    assert progress(browser).startswith("5 of ")
    badges = [card.text for card in browser.find_elements(By.CSS_SELECTOR, ".card .decision")[:6]]
    assert badges == ["kept", "accepted", "skipped", "kept", "→ a new class", ""]

    found = downloaded(browser, tmp_path)
    given = [HOSTILE[sample["given"]] for sample in samples]
    expected = [
        (given[0], "keep"),
        (HOSTILE[samples[1]["suggested"]], "accept"),
        ("", "skip"),
        (given[3], "keep"),
        ("a new class", "choose"),
    ]
    assert sorted(found, key=lambda line: int(line["index"])) == found
    assert {line["index"]: line for line in found} == {
        str(sample["index"]): {
            "index": str(sample["index"]),
            "path": content.paths[sample["index"]],
            "given_label": HOSTILE[sample["given"]],
            "new_label": label,
            "action": action,
        }
        for sample, (label, action) in zip(samples, expected, strict=False)
    }

    counts = relabel(table, tmp_path / "corrections.csv", tmp_path / "out.csv")
    assert counts == Relabelled(num_changed=2, num_kept=2, num_skipped=1)
    labels = [label for _, label in rows]
    labels[samples[1]["index"]], labels[samples[4]["index"]] = HOSTILE[samples[1]["suggested"]], "a new class"
    assert list_table(tmp_path / "out.csv")[0].labels == labels
    browser.execute_script("localStorage.clear()")


def test_hostile_names_are_shown_and_do_nothing(browser: Any, open_page: Callable[..., None]) -> None:
    open_page(hostile_content(), tiny_picture)
    assert browser.title == f"{HOSTILE[1]} \u2013 DivideMix report"
    assert browser.find_element(By.TAG_NAME, "h1").text == HOSTILE[1]
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 2
    assert not browser.find_elements(By.CSS_SELECTOR, "[onerror], [onclick], b, main script")
    names = {element.get_attribute("title") for element in browser.find_elements(By.CSS_SELECTOR, ".card .given")}
    assert names <= set(HOSTILE)
    for width in (1280, 390):
        media(browser, width, 800, dark=False)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_filters_orders_and_the_heat_map(browser: Any, open_page: Callable[..., None]) -> None:
    open_page(fashion_content(6), fashion_shown)
    everything = browser.execute_script("return DATA.suspects.filter((sample) => sample.flagged)")
    assert shown(browser) == everything
    assert len(browser.find_elements(By.CLASS_NAME, "card")) < len(everything), "cards wait until they are near"

    cell = browser.find_element(By.CSS_SELECTOR, ".heat-map tbody tr:nth-child(2) td:nth-child(2) button")
    assert "given Trouser, suggested T-shirt/top" in cell.get_attribute("aria-label")
    cell.send_keys(Keys.ENTER)
    pair = [sample for sample in everything if (sample["given"], sample["suggested"]) == (1, 0)]
    assert shown(browser) == pair
    assert focused(browser) == pair[0]["index"]

    button(browser, "Clear filters").click()
    given, suggested, state, order = browser.find_elements(By.CSS_SELECTOR, ".toolbar select")
    Select(order).select_by_value("confidence")
    confidence = [sample["likely"][0][1] for sample in shown(browser)]
    assert confidence == sorted(confidence, reverse=True)
    Select(order).select_by_value("class")
    labels = [sample["given"] for sample in shown(browser)]
    assert labels == sorted(labels)
    Select(given).select_by_value("5")
    Select(suggested).select_by_value("4")
    assert {(sample["given"], sample["suggested"]) for sample in shown(browser)} == {(5, 4)}
    Select(state).select_by_value("done")
    assert shown(browser) == []
    assert "No sample" in browser.find_element(By.CLASS_NAME, "gallery-end").text


def test_suggestions_for_labels_that_are_not_flagged_can_be_shown(browser: Any, open_page: Callable[..., None]) -> None:
    content = fashion_content(6)
    few = np.isin(np.arange(len(content.labels)), np.flatnonzero(content.is_issue)[:300])
    open_page(dataclasses.replace(content, is_issue=few), fashion_shown)
    Select(browser.find_elements(By.CSS_SELECTOR, ".toolbar select")[2]).select_by_value("other")
    suspects = browser.execute_script("return DATA.suspects")
    other = [one for one in suspects if not one["flagged"] and one["given"] != one["suggested"]]
    assert len(other) > 100
    assert shown(browser) == other
    assert f"Accept all {len(other)}" in browser.find_element(By.CLASS_NAME, "bulk").text


def test_moving_through_the_gallery(browser: Any, open_page: Callable[..., None]) -> None:
    open_page(fashion_content(6), fashion_shown)
    button(browser, "Start reviewing").click()
    order = [sample["index"] for sample in shown(browser)]
    columns = browser.execute_script("return numColumns()")
    assert columns > 2
    place = 0
    for key, by in (
        (Keys.ARROW_RIGHT, 1),
        (Keys.ARROW_DOWN, columns),
        (Keys.ARROW_LEFT, -1),
        (Keys.ARROW_UP, -columns),
    ):
        press(browser, key)
        place += by
        assert focused(browser) == order[place]
    press(browser, Keys.ARROW_UP, Keys.ARROW_LEFT)
    assert focused(browser) == order[0]
    press(browser, Keys.END)
    assert focused(browser) == order[-1]
    press(browser, "j", Keys.HOME)
    assert focused(browser) == order[0]
    press(browser, "?")
    assert browser.find_element(By.ID, "help").is_displayed()
    press(browser, Keys.ESCAPE)
    assert focused(browser) == order[0]
    press(browser, "c")
    assert browser.find_element(By.ID, "choose").is_displayed()
    press(browser, "k", Keys.ESCAPE)  # typed into the search, decides nothing
    assert progress(browser).startswith("0 of ")
    assert focused(browser) == order[0]


def test_stepping_through_the_losses(browser: Any, open_page: Callable[..., None]) -> None:
    open_page(fashion_content(8), fashion_shown)
    slider = browser.find_element(By.ID, "epoch-slider")
    label = browser.find_element(By.CLASS_NAME, "shown-epoch")
    assert label.text == f"Epoch {browser.execute_script('return DATA.open_division[0]')} of 8"
    slider.send_keys(Keys.HOME, Keys.END)
    assert label.text == "Epoch 8 of 8"
    before = browser.find_element(By.CSS_SELECTOR, ".stepper .plot").get_attribute("innerHTML")
    slider.send_keys(Keys.ARROW_LEFT)
    assert label.text == "Epoch 7 of 8"
    slider.send_keys(Keys.ARROW_LEFT)
    assert label.text == "Epoch 6 of 8, kept"
    stepped = browser.find_element(By.CSS_SELECTOR, ".stepper .plot").get_attribute("innerHTML")
    assert stepped != before
    browser.find_element(By.CSS_SELECTOR, ".switch label:last-of-type").click()
    assert browser.find_element(By.CSS_SELECTOR, ".stepper .plot").get_attribute("innerHTML") != stepped


def test_a_browser_that_keeps_nothing_still_reviews(
    browser: Any, open_page: Callable[..., None], tmp_path: Path
) -> None:
    refuse = (
        "for (const name of ['getItem', 'setItem']) Storage.prototype[name] = () => { throw new DOMException('no'); }"
    )
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": refuse})
    try:
        open_page(fashion_content(4, with_truth=False), fashion_shown)
        button(browser, "Start reviewing").click()
        press(browser, "k", "s")
        assert progress(browser).startswith("2 of ")
        assert "does not store decisions" in browser.find_element(By.CSS_SELECTOR, ".progress-line .note").text
        assert [line["action"] for line in downloaded(browser, tmp_path)].count("keep") == 1
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)


def test_a_run_without_epochs_paths_pictures_or_flags(browser: Any, open_page: Callable[..., None]) -> None:
    content = invented_content(np.arange(300) % 60, tuple(f"class {label}" for label in range(60)))
    nothing = np.zeros(300, bool)
    content = dataclasses.replace(content, rows=[], divisions=[], is_issue=nothing, kept_epoch=None, choices=[])
    open_page(content, lambda i: None)
    assert len(shown(browser)) == 300
    assert not browser.find_elements(By.CSS_SELECTOR, "#training, #losses, #quality, .heat-map, .card img")
    links = browser.find_elements(By.CSS_SELECTOR, "nav a")
    assert {"Review", "Confusions", "Settings"} <= {link.text for link in links}
    sections = [section.get_attribute("id") for section in browser.find_elements(By.CSS_SELECTOR, "main > section")]
    assert [link.get_attribute("href").partition("#")[2] for link in links] == sections[1:]
    assert not {"training", "losses", "quality", "map"} & set(sections)
    assert browser.find_elements(By.CSS_SELECTOR, ".most-frequent button")
    button(browser, "Start reviewing").click()
    press(browser, "c", "no such class")
    assert browser.find_element(By.ID, "choose-options").text == "No class name contains this."
    press(browser, Keys.ESCAPE)


def test_the_map_of_vectors_is_coloured_by_the_given_or_the_suggested_label(
    browser: Any, open_page: Callable[..., None]
) -> None:
    content = invented_content(np.arange(60) % 3, ("cat", "dog", "owl"))
    vectors = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
    open_page(dataclasses.replace(content, map=data_map(vectors, content.is_issue)), lambda i: None)
    assert "Map" in [link.text for link in browser.find_elements(By.CSS_SELECTOR, "nav a")]
    dots = browser.find_elements(By.CSS_SELECTOR, "#map .data-map circle")
    suspects = [dot for dot in dots if dot.get_attribute("class") == "suspect"]
    assert (len(dots), len(suspects)) == (60, int(content.is_issue.sum()))
    assert [name.text for name in browser.find_elements(By.CSS_SELECTOR, "#map .map-key .name")] == [
        "cat",
        "dog",
        "owl",
    ]
    given = [dot.get_attribute("fill") for dot in dots]
    browser.find_elements(By.CSS_SELECTOR, "#map .map-colour input")[1].click()
    changed = sum(dot.get_attribute("fill") != colour for dot, colour in zip(dots, given, strict=True))
    assert changed == int((content.probs.argmax(axis=1) != content.labels).sum()) > 0


@pytest.mark.parametrize("num_divided", [None, 40])
def test_labels_kept_are_a_share_of_those_divided(
    browser: Any, open_page: Callable[..., None], num_divided: int | None
) -> None:
    """Runs of before the number was written divided all of the 200 samples."""
    row = {"epoch": 1, "phase": "mix", "num_labeled": [30, 10]} | ({"num_divided": num_divided} if num_divided else {})
    content = dataclasses.replace(invented_content(np.arange(200) % 2, ("a", "b")), rows=[row], kept_epoch=1)
    open_page(content, lambda i: None)
    shares = [value.text for value in browser.find_elements(By.CSS_SELECTOR, "#training .legend output")]
    assert shares == (["75.0 %", "25.0 %"] if num_divided else ["15.0 %", "5.0 %"])


@pytest.mark.parametrize("clean", [False, True])
def test_a_clean_validation_set_is_not_called_noisy(browser: Any, open_page: Callable[..., None], clean: bool) -> None:
    content = invented_content(np.arange(200) % 2, ("a", "b"))
    rows = [dict(row) | ({"val_is_clean": True} if clean else {}) for row in content.rows]
    open_page(dataclasses.replace(content, rows=rows, choices=[]), lambda i: None)
    browser.execute_script("document.querySelector('#training .numbers').open = true")
    said = [browser.find_element(By.ID, name).text.lower() for name in ("overview", "training")]
    for noisy, right in (
        ("agreement with labels held out", "accuracy on clean validation images"),
        ("held-out, noisy", "validation, clean"),
        ("held-out acc.", "validation acc."),
    ):
        assert [noisy in " ".join(said), right in " ".join(said)] == [not clean, clean]


# Contrast of every visible text against what is painted behind it, as WCAG defines it.
CONTRAST = r"""
const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
const rgba = (colour) => {
  canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
};
const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    if (colour[3] === 255) return colour;
  }
  return [255, 255, 255];
};
const poor = [];
for (const element of document.querySelectorAll("body *")) {
  const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data).join("").trim();
  if (!text || element.closest(":disabled, script, noscript, option") || !element.checkVisibility()) continue;
  const style = getComputedStyle(element);
  const colour = rgba(element instanceof SVGElement ? style.fill : style.color);
  const [light, dark] = [luminance(colour), luminance(behind(element))].sort((a, b) => b - a);
  const ratio = (light + 0.05) / (dark + 0.05);
  if (ratio < 4.5) poor.push(`${element.tagName} ${element.className}: ${text} ${ratio.toFixed(2)}`);
}
return poor;
"""


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_and_controls_have_names(browser: Any, open_page: Callable[..., None], dark: bool) -> None:
    open_page(fashion_content(6), fashion_shown)
    media(browser, 1280, 800, dark=dark)
    button(browser, "Start reviewing").click()
    press(browser, "k", "a", "s", "u")
    assert browser.execute_script(CONTRAST) == []
    press(browser, "c")
    assert browser.execute_script(CONTRAST) == []
    press(browser, Keys.ESCAPE)
    nodes = browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles = {"button", "combobox", "slider", "radio", "option", "img", "image", "progressbar", "link", "listbox"}
    nameless = [
        node
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles and not node.get("name", {}).get("value")
    ]
    assert nameless == []
    browser.execute_script("localStorage.clear()")


def test_fifty_thousand_samples_open_quickly(browser: Any, open_page: Callable[..., None]) -> None:
    """Prints the time; on a machine that does other things as well, only a generous limit holds."""
    rng = np.random.default_rng(0)
    pictures = [image(encode(rng.integers(0, 256, (96, 96, 3), dtype=np.uint8))) for _ in range(20)]
    content = invented_content(
        np.arange(50_000) % 40,
        tuple(f"class {label}" for label in range(40)),
        num_epochs=300,
        paths=tuple(f"folder/{i:06d}.jpeg" for i in range(50_000)),
        with_truth=True,
    )
    open_page(content, lambda i: pictures[i % 20])
    took = browser.execute_script("return performance.getEntriesByType('navigation')[0].loadEventEnd")
    size = browser.execute_script("return document.getElementById('data').textContent.length")
    print(f"50,000 samples: {size / 1e6:.1f} MB of data, loaded in {took / 1000:.2f} s")
    assert len(shown(browser)) > 500
    assert 0 < took < 10_000


def test_phases_that_cannot_be_kept_are_shaded_with_their_names(browser: Any, open_page: Callable[..., None]) -> None:
    """Whatever their names are: a method may have several such phases, also between others."""
    phases = [("ease in", False), ("ease in", False), ("train", True), ("rest", False), ("train", True)]
    rows = [
        {"epoch": epoch, "phase": name, "selects": selects, "val_acc": 50.0 + epoch}
        for epoch, (name, selects) in enumerate(phases, start=1)
    ]
    content = dataclasses.replace(invented_content(np.arange(200) % 2, ("a", "b")), rows=rows, kept_epoch=None)
    open_page(content, lambda i: None)
    chart = browser.find_element(By.CSS_SELECTOR, "#training .plot")
    assert [mark.text for mark in chart.find_elements(By.CLASS_NAME, "mark-label")] == ["ease in", "rest"]
    widths = [float(band.get_attribute("width")) for band in chart.find_elements(By.CLASS_NAME, "band")]
    assert max(widths) == pytest.approx(1.5 * min(widths), rel=0.01)  # epochs 1 to 2.5, and 3.5 to 4.5
    browser.find_element(By.CSS_SELECTOR, "#training .numbers summary").click()
    assert until(lambda: bool(browser.find_elements(By.CSS_SELECTOR, "#training .numbers tbody")))
    cells = browser.find_elements(By.CSS_SELECTOR, "#training .numbers tbody td:nth-child(2)")
    assert [cell.text for cell in cells] == [name for name, _ in phases]


def test_the_suspects_come_first_and_settings_are_folded(browser: Any, open_page: Callable[..., None]) -> None:
    open_page(fashion_content(6), fashion_shown)
    sections = [section.get_attribute("id") for section in browser.find_elements(By.CSS_SELECTOR, "main > section")]
    assert sections[:2] == ["overview", "review"]
    assert sections[-1] == "settings"
    assert {"noise", "quality", "training", "losses"} <= set(sections)
    top = browser.execute_script("return document.querySelector('#review').getBoundingClientRect().top")
    assert top < 600
    assert not browser.find_element(By.CSS_SELECTOR, "#settings .choices table").is_displayed()
    browser.find_element(By.CSS_SELECTOR, "nav a[href='#settings']").click()
    cards = len(browser.find_elements(By.CLASS_NAME, "card"))
    time.sleep(0.3)
    assert len(browser.find_elements(By.CLASS_NAME, "card")) == cards, "the gallery grows and pushes the section away"
    browser.execute_script("arguments[0].scrollIntoView({ block: 'center' })", button(browser, "more"))
    button(browser, "more").click()
    assert len(browser.find_elements(By.CLASS_NAME, "card")) == cards + 120


def test_without_test_images_the_headline_says_what_the_figure_means(
    browser: Any, open_page: Callable[..., None]
) -> None:
    content = invented_content(np.arange(200) % 2, ("a", "b"))
    kept = {
        "epoch": 2,
        "phase": "mix",
        "val_acc": 64.2,
        "num_val": 20,
        "num_labeled": [120, 140],
        "num_divided": 200,
        "selects": True,
    }
    flat = {"low": 0, "high": 1, "counts": [100, 100], "clean_curve": [90, 60], "wrong_curve": [10, 40]}
    divisions = [{"epoch": 2, "net": net, **flat} for net in (0, 1)]
    content = dataclasses.replace(
        content, rows=[kept], divisions=divisions, kept_epoch=2, noise_rate=0.3, is_issue=np.arange(200) < 60
    )
    open_page(content, lambda i: None)
    said = browser.find_element(By.ID, "overview").text.replace("\u00a0", " ")
    for words in (
        "Flagged as probably wrong\n60 (30 %)",
        "Agreement with labels held out\n64.2 %",
        "the losses alone made 25 % of the labels look wrong, and training ignored 35 %: these are steps on the way",
        "The accuracy is not known, because there are no test samples with right labels.",
        "The networks agree with 64 % of the given labels of 20 samples that they were not trained on.",
        "If 30 % of them are wrong, a model that is always right agrees with about 70 %.",
    ):
        assert words in said
    assert "accuracy on held-out" not in said.lower()
    assert not browser.find_elements(By.CSS_SELECTOR, "#overview .caution")
    open_page(dataclasses.replace(content, cautions=["The networks never predict <b>."]), lambda i: None)
    assert browser.find_element(By.CSS_SELECTOR, "#overview .caution").text == "The networks never predict <b>."


def test_three_hundred_flags_in_a_few_actions(browser: Any, open_page: Callable[..., None], tmp_path: Path) -> None:
    """The exceptions first, one by one; then all that are sure; then all that are left. Undo takes a group back."""
    content = fashion_content(6)
    order = np.lexsort((content.label_score, ~content.is_issue))
    flagged = np.zeros(len(order), bool)
    flagged[order[:300]] = True
    open_page(dataclasses.replace(content, is_issue=flagged), fashion_shown)
    samples = shown(browser)
    assert len(samples) == 300
    button(browser, "Start reviewing").click()
    press(browser, "k", "d", "m", "s")  # the exceptions
    assert progress(browser) == "4 of 300 reviewed"
    least = sorted(sample["likely"][0][1] for sample in samples)[150]
    sure = [sample for sample in samples[4:] if sample["likely"][0][1] >= least]
    assert 50 < len(sure) < 250
    limit = browser.find_element(By.CSS_SELECTOR, ".bulk input")
    begins = [p for p in (95, 90, 80, 70, 60, 50) if sum(100 * one["likely"][0][1] >= p for one in samples) >= 30]
    assert limit.get_attribute("value") == str(begins[0])  # a tenth of the flags are so sure
    limit.clear()
    limit.send_keys(f"{100 * least:.6g}")
    button(browser, f"Accept the {len(sure)}").click()
    assert progress(browser) == f"{4 + len(sure)} of 300 reviewed"
    button(browser, f"Accept all {296 - len(sure)}").click()
    assert progress(browser) == "300 of 300 reviewed"
    browser.find_element(By.CSS_SELECTOR, ".bulk .quiet").click()  # undo
    assert progress(browser) == f"{4 + len(sure)} of 300 reviewed"
    button(browser, f"Keep all {296 - len(sure)}").click()
    found = {int(line["index"]): line for line in downloaded(browser, tmp_path)}
    accepted = {sample["index"] for sample in sure}
    for sample in samples[4:]:
        line = found[sample["index"]]
        action, label = ("accept", "suggested") if sample["index"] in accepted else ("keep", "given")
        assert (line["action"], line["new_label"]) == (action, content.classes[sample[label]])
    assert [found[sample["index"]]["action"] for sample in samples[:4]] == ["keep", "delete", "ambiguous", "skip"]
    assert [found[sample["index"]]["new_label"] for sample in samples[1:4]] == ["", "", ""]
    browser.execute_script("localStorage.clear()")


def test_a_photograph_is_enlarged_and_decided_on_large(
    browser: Any, open_page: Callable[..., None], tmp_path: Path
) -> None:
    """The original is loaded from the disk; where it is gone, the thumbnail stays. The decisions are the gallery's."""
    name = "a#b?c:50% \u0642\u0637.png"
    Image.new("RGB", (900, 600), (200, 30, 30)).save(tmp_path / name)
    content = dataclasses.replace(invented_content(np.arange(80) % 2, ("a", "b")), is_issue=np.ones(80, bool))
    small = encode(np.full((100, 150, 3), 90, np.uint8))
    order = np.lexsort((content.label_score, ~content.is_issue)).tolist()
    links = {order[0]: f"./{quote(name)}", order[1]: "./gone.png"}
    open_page(content, lambda i: image(small, links.get(i)))
    first = shown(browser)[0]
    browser.find_element(By.CSS_SELECTOR, ".card .picture").click()
    pair = f"{content.classes[first['given']]} → {content.classes[first['suggested']]}"
    assert " ".join(browser.find_element(By.CSS_SELECTOR, "#large .about .pair").text.split()) == pair
    size = "const image = document.querySelector('#large img'); return [image.naturalWidth, image.naturalHeight]"
    assert until(lambda: browser.execute_script(size) == [900, 600])
    link = browser.find_element(By.CSS_SELECTOR, "#large a")
    assert link.get_attribute("href") == (tmp_path / name).as_uri()
    press(browser, "k")
    assert browser.find_element(By.ID, "large-title").text == f"Sample {order[1]}, 2 of 80"
    assert until(lambda: browser.execute_script(size) == [150, 100])
    press(browser, Keys.ARROW_RIGHT, "d", Keys.ARROW_LEFT)
    assert browser.find_element(By.CLASS_NAME, "large-decision").text == "deleted"
    assert not browser.find_elements(By.CSS_SELECTOR, "#large a")
    press(browser, "z")
    assert not browser.find_element(By.ID, "large").is_displayed()
    assert focused(browser) == order[2]
    press(browser, "u", "u", "u", Keys.ENTER)
    assert progress(browser).startswith("0 of ")
    assert browser.find_element(By.ID, "large").is_displayed()
    press(browser, Keys.ESCAPE)
    browser.get_log("browser")  # the file that is gone


def test_a_click_low_in_the_window_enlarges_too(browser: Any, open_page: Callable[..., None]) -> None:
    """The bar of the review appears at the first click, over the lowest pictures, and must not take the click."""
    content = dataclasses.replace(invented_content(np.arange(80) % 2, ("a", "b")), is_issue=np.ones(80, bool))
    open_page(content, lambda i: image(encode(np.full((150, 150, 3), 90, np.uint8))))
    picture, bar = (browser.find_element(By.CSS_SELECTOR, one) for one in (".card .picture", ".action-bar"))
    middle = "const box = arguments[0].getBoundingClientRect(); return (box.top + box.bottom) / 2"
    top = "return arguments[0].getBoundingClientRect().top"
    browser.execute_script("arguments[0].scrollIntoView({ block: 'end' })", picture)
    low = browser.execute_script("scrollBy(0, -45);" + middle, picture)
    assert not bar.is_displayed()
    webdriver.ActionChains(browser).click(picture).perform()
    assert browser.find_element(By.ID, "large").is_displayed()
    press(browser, Keys.ESCAPE)
    assert bar.is_displayed()
    assert low > browser.execute_script(top, bar), "the click was above the bar: this test shows nothing"


def until(holds: Callable[[], bool], seconds: float = 10) -> bool:
    """Whether it holds before the time is over."""
    deadline = time.monotonic() + seconds
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def test_texts_and_rows_can_be_shown_too(browser: Any, open_page: Callable[..., None]) -> None:
    """Hostile ones stay text."""
    content = dataclasses.replace(invented_content(np.arange(20) % 2, ("a", "b")), is_issue=np.ones(20, bool))
    order = np.lexsort((content.label_score, ~content.is_issue)).tolist()
    columns = [(f"column {i} {HOSTILE[0]}", HOSTILE[i % len(HOSTILE)], i == 8) for i in range(9)]
    long = HOSTILE[1] * 30
    marks = [(0, 5), (9, len(HOSTILE[1]) + 3)]
    open_page(content, lambda i: text(long, marks) if i == order[0] else row(columns))
    cards = browser.find_elements(By.CLASS_NAME, "card")
    assert HOSTILE[1] in cards[0].text
    cells = cards[1].find_elements(By.CSS_SELECTOR, ".cells > span")
    assert len(cells) == 6
    assert cells[0].get_attribute("class") == "unusual"
    assert cells[0].text.startswith("column 8")
    button(browser, "Start reviewing").click()
    press(browser, "z")
    assert browser.find_element(By.CSS_SELECTOR, "#large .text p").text == long
    marked = browser.find_elements(By.CSS_SELECTOR, "#large mark")
    assert [one.get_attribute("textContent") for one in marked] == [long[start:stop] for start, stop in marks]
    press(browser, Keys.ARROW_RIGHT)
    assert len(browser.find_elements(By.CSS_SELECTOR, "#large .cells > span")) == 9
    press(browser, "c")
    assert browser.find_element(By.ID, "choose").is_displayed()
    press(browser, Keys.ESCAPE, "z")
    assert not browser.find_elements(By.CSS_SELECTOR, "[onerror], main script")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize(("height", "width"), [(28, 28), (300, 300), (400, 100), (100, 400)])
def test_a_picture_is_whole_in_its_card_and_large(
    browser: Any, open_page: Callable[..., None], height: int, width: int
) -> None:
    """Nothing is cut off: the box of the picture is inside the box around it."""
    content = dataclasses.replace(invented_content(np.arange(20) % 2, ("a", "b")), is_issue=np.ones(20, bool))
    small = image(encode(np.full((height, width, 3), 90, np.uint8)))
    open_page(content, lambda i: small)
    button(browser, "Start reviewing").click()
    press(browser, "z")
    for screen in ((1280, 800), (390, 844)):
        media(browser, *screen, dark=False)
        hidden = browser.execute_script("""
            return [...document.querySelectorAll(".picture img, .large-sample img")].map((image) => {
              const [inner, outer] = [image, image.parentElement].map((element) => element.getBoundingClientRect());
              const fits = getComputedStyle(image).objectFit === "contain";
              return fits ? Math.max(inner.height - outer.height, inner.width - outer.width) : 999; });""")
        assert len(hidden) == 21
        assert max(hidden) < 1


def test_on_a_phone_labels_stand_apart_and_nothing_scrolls_inside(browser: Any, open_page: Callable[..., None]) -> None:
    choices = [
        (f"setting {i}", "value " * 5, "a reason that takes more than one line on a phone " * 3) for i in range(30)
    ]
    open_page(dataclasses.replace(fashion_content(40), choices=choices), fashion_shown)
    media(browser, 390, 844, dark=False)
    gaps = browser.execute_script("""
        const edge = (element) => { const range = document.createRange(); range.selectNodeContents(element);
          return range.getBoundingClientRect(); };
        return [...document.querySelectorAll(".card .line")]
          .map((line) => [edge(line.firstChild), edge(line.lastChild)])
          .map(([first, last]) => (last.top >= first.bottom - 2 ? 99 : last.left - first.right));""")
    assert len(gaps) > 20
    assert min(gaps) >= 4
    for summary in browser.find_elements(By.CSS_SELECTOR, "summary"):
        browser.execute_script("arguments[0].click()", summary)
    inner = browser.execute_script("""
        return [...document.querySelectorAll("details .scroller")]
          .map((element) => [element.scrollHeight - element.clientHeight, getComputedStyle(element).overflowY]);""")
    assert len(inner) >= 2
    assert all(hidden <= 1 for hidden, _ in inner)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("kind", ["texts", "pictures"])
def test_on_a_phone_cards_have_room_for_class_names(browser: Any, open_page: Callable[..., None], kind: str) -> None:
    """A name is whole if its text is no wider than its box."""
    content = invented_content(np.arange(20) % 2, ("entertainment", "international"))
    show = {"texts": lambda i: text("a short text", []), "pictures": tiny_picture}[kind]
    open_page(dataclasses.replace(content, is_issue=np.ones(20, bool)), show)
    media(browser, 390, 844, dark=False)
    hidden = browser.execute_script("""
        return [...document.querySelectorAll(".card .line .name")]
          .map((element) => element.scrollWidth - element.clientWidth);""")
    assert len(hidden) > 20
    assert max(hidden) == 0


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ReviewServer]:
    """The server of a run whose samples have hostile names; two of them have files."""
    content = dataclasses.replace(hostile_content(), can_add_classes=True)
    assert content.paths is not None
    suggested = content.probs.argmax(axis=1)
    samples = {
        i: Sample(content.paths[i], HOSTILE[content.labels[i]], HOSTILE[suggested[i]])
        for i in range(len(content.labels))
    }
    Image.new("RGB", (900, 600), (200, 30, 30)).save(tmp_path / "photo.png")
    order = np.lexsort((content.label_score, ~content.is_issue)).tolist()
    review = StoredReview(tmp_path / "corrections.csv", samples, HOSTILE, can_add_classes=True)
    pictures = Pictures({order[0]: tmp_path / "photo.png"}, lambda i: np.full((8, 8, 3), i, np.uint8))
    with ReviewServer(content, pictures, review, {"saved_to": "corrections.csv", "apply": HOSTILE[0]}) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def actions(folder: Path) -> dict[int, str]:
    """What is on the disk."""
    file = folder / "corrections.csv"
    return {one.index: one.action for one in read_corrections(file)} if file.exists() else {}


def test_the_server_saves_each_decision_at_once_and_two_tabs_lose_none(
    browser: Any, served: ReviewServer, tmp_path: Path
) -> None:
    browser.get("about:blank")
    browser.get_log("browser")
    media(browser, 1280, 800, dark=False)
    browser.get(served.url)
    first, samples = browser.current_window_handle, shown(browser)
    index = [sample["index"] for sample in samples]
    button(browser, "Start reviewing").click()
    press(browser, "k", "d")
    assert until(lambda: actions(tmp_path) == {index[0]: "keep", index[1]: "delete"})
    browser.switch_to.new_window("tab")
    browser.get(served.url)
    assert progress(browser).startswith("2 of ")
    button(browser, "Continue").click()
    press(browser, "m")
    assert until(lambda: len(actions(tmp_path)) == 3)
    browser.switch_to.window(first)
    press(browser, Keys.ARROW_RIGHT, "s")  # the first tab does not know of the second one's decision yet
    both = {index[0]: "keep", index[1]: "delete", index[2]: "ambiguous", index[3]: "skip"}
    assert until(lambda: actions(tmp_path) == both)
    assert until(lambda: progress(browser).startswith("4 of "))
    press(browser, "u")
    assert until(lambda: actions(tmp_path) == {k: v for k, v in both.items() if k != index[3]})
    press(browser, Keys.HOME, "z")
    size = "const image = document.querySelector('#large img'); return [image.naturalWidth, image.naturalHeight]"
    assert until(lambda: browser.execute_script(size) == [900, 600])
    assert browser.find_element(By.CSS_SELECTOR, "#large a").get_attribute("href") == f"{served.url}original/{index[0]}"
    press(browser, "z")
    number = len(samples) - 3
    button(browser, f"Keep all {number}").click()
    assert until(lambda: len(actions(tmp_path)) == len(samples))
    assert HOSTILE[0] in browser.find_element(By.CLASS_NAME, "saved").text
    assert browser.get_log("browser") == []
    browser.refresh()
    assert progress(browser) == f"{len(samples)} of {len(samples)} reviewed"

    # What is decided while the server is away is sent when it answers again.
    browser.execute_script(
        "window.answering = window.fetch; window.fetch = () => Promise.reject(new TypeError('away'))"
    )
    button(browser, "Continue").click()
    press(browser, "d")
    note = browser.find_element(By.CSS_SELECTOR, ".progress-line .note")
    assert until(note.is_displayed)
    assert "The server does not answer" in note.text
    assert actions(tmp_path)[index[0]] == "keep"
    browser.execute_script("window.fetch = window.answering; window.dispatchEvent(new Event('focus'))")
    assert until(lambda: actions(tmp_path)[index[0]] == "delete")
    assert until(lambda: not note.is_displayed())
    browser.switch_to.window(next(handle for handle in browser.window_handles if handle != first))
    browser.close()
    browser.switch_to.window(first)
    browser.get("about:blank")
