"""The command that makes the README's pictures from a run's report: python tools/readme_images.py RUN.

Needs Chromium with its driver, and selenium.
"""

import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.common.by import By

_FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_SECTIONS = {"report": ("overview", "review"), "losses": ("losses",), "review": ("review",)}
# A section that is higher than the window would be photographed scrolled.
_SHORTEN = "for (const card of document.querySelectorAll('.card:nth-child(n+11)')) card.remove();"
_MARGIN, _MAX_HEIGHT = 24, 690  # pixels; one row of curves


def main() -> None:
    """Write docs/images/report.png, losses.png and review.png."""
    report = Path(sys.argv[1]).resolve() / "report.html"
    images = Path(__file__).parents[1] / "docs" / "images"
    images.mkdir(parents=True, exist_ok=True)
    options = webdriver.ChromeOptions()
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*_FLAGS, f"--user-data-dir={profile}", "--window-size=1240,2600"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options)
        try:
            driver.get(report.as_uri())
            driver.execute_script(_SHORTEN)
            for name, sections in _SECTIONS.items():
                shots = [_shot(driver, section, Path(profile)) for section in sections]
                _stack(shots).quantize(96).save(images / f"{name}.png", optimize=True)
        finally:
            driver.quit()


def _shot(driver: webdriver.Chrome, section: str, folder: Path) -> Image.Image:
    """A section of the page as a picture."""
    path = folder / f"{section}.png"
    found = driver.find_element(By.ID, section)
    driver.execute_script("arguments[0].scrollIntoView()", found)
    found.screenshot(str(path))
    return Image.open(path).convert("RGB")


def _stack(shots: list[Image.Image]) -> Image.Image:
    """The pictures one below the other, cut where they are too much for a README."""
    width, height = max(shot.width for shot in shots), min(sum(shot.height for shot in shots), _MAX_HEIGHT)
    whole = Image.new("RGB", (width + 2 * _MARGIN, height), shots[0].getpixel((0, 0)))
    top = 0
    for shot in shots:
        whole.paste(shot, (_MARGIN, top))
        top += shot.height
    return whole


if __name__ == "__main__":
    main()
