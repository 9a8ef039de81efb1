"""Pages in headless Chromium: all of them at once, each in a frame as wide as a screen, measured by a script."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
MISSING = "chromium is not installed (make browser): pages are not looked at"
PHONE, DESKTOP = 390, 1280
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
    *("--enable-logging=stderr", "--virtual-time-budget=20000", "--window-size=1600,1200"),
)
_PROBE = Path(__file__).with_name("browser_probe.js").read_text()


def looked_at(pages, folder, widths=(PHONE, DESKTOP), dark=False):
    """What there is to see of pages (name -> HTML) at some widths: {(name, width): measured}, and what was logged."""
    frames = []
    for name, text in pages.items():
        for width in widths:
            watched = (
                f"window.pageErrors = []; onerror = (e) => pageErrors.push(String(e)); window.pageName = {name!r};"
            )
            probe = f"<script>{watched}</script>"
            page = text.replace("<head>", f"<head>{probe}", 1).replace(
                "</body>", f"<script>{_PROBE}</script></body>", 1
            )
            file = folder / f"{name}-{width}.html"
            file.write_text(page)
            frames.append(f'<iframe src="{file.name}" width="{width}" height="800" style="border: 0"></iframe>')
    listen = 'addEventListener("message", (m) => document.querySelector("pre").append(m.data + "\\n"));'
    harness = folder / "harness.html"
    harness.write_text(f"<!DOCTYPE html><pre></pre><script>{listen}</script>{''.join(frames)}")
    flags = [*_FLAGS, f"--user-data-dir={folder / 'profile'}", *(["--blink-settings=preferredColorScheme=0"] * dark)]
    done = subprocess.run(
        [CHROMIUM, *flags, "--dump-dom", harness.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    lines = re.search(r"<pre>(.*?)</pre>", done.stdout, re.DOTALL)[1].strip().splitlines()
    found = [json.loads(html.unescape(line)) for line in lines]
    logged = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return {(each["name"], each["width"]): each for each in found}, logged
