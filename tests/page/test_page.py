#!/usr/bin/env python3
"""Opens the page of `headroom train --report` in headless Chromium and compares what it shows with --json.

test_page.py PROGRAM. One browser for all checks. Exits 77 where the browser or Selenium is not installed.
"""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
except ImportError as missing:
    print(f"skipped: {missing}: install python3-selenium")
    sys.exit(77)

DEADLINE_SECONDS = 30
SHAPE = ["--layers", "2", "--width", "64", "--seq", "32", "--ranks", "2", "--steps", "3", "--quiet"]


def start_browser():
    options = Options()
    # No network at all: every request but those for files goes to a proxy that is not there.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,800",
                     "--proxy-server=http://127.0.0.1:9", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
    browser.set_page_load_timeout(DEADLINE_SECONDS)
    browser.set_script_timeout(DEADLINE_SECONDS)
    return browser


def train(program, folder, prefetch):
    """A run's page, picture and report."""
    page, picture, report, events = (folder / f"{prefetch}.{end}" for end in ("html", "png", "json", "events"))
    subprocess.run([program, "train", *SHAPE, "--backward-prefetch", prefetch, "--report", page, "--png", picture,
                    "--json", report, "--events", events], check=True, timeout=DEADLINE_SECONDS, stdout=subprocess.DEVNULL)
    return page, picture, json.loads(report.read_text())


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.runs = {prefetch: train(PROGRAM, cls.folder, prefetch) for prefetch in ("pre", "post")}
        cls.browser = start_browser()
        cls.addClassCleanup(cls.browser.quit)

    def open(self, prefetch):
        page, _, report = self.runs[prefetch]
        self.browser.get(page.as_uri())
        return report

    def tearDown(self):
        self.assertEqual([], self.browser.get_log("browser"), "the browser's console")

    def js(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def find(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def press(self, key):
        self.find("#figure").send_keys(key)

    def shown(self, kind):
        """{(category, name or unit): bytes} of the panel's rows."""
        return self.js(
            "return Array.from(document.querySelectorAll(`#panel tr.${arguments[0]}`), (row) => ({...row.dataset}))", kind)

    def hover_peak(self):
        ActionChains(self.browser).move_to_element(self.find("#figure .peak circle")).perform()

    def test_page_hovered_at_peak_shows_the_reports_blocks(self):
        report = self.open("pre")
        peak = report["memory"]["peak"]
        self.hover_peak()
        self.assertEqual(peak["allocated"], int(self.find("#live-total").get_attribute("data-bytes")))
        self.assertEqual(peak["event"], int(self.find("#panel").get_attribute("data-x")))
        categories = {row["category"]: int(row["bytes"]) for row in self.shown("band")}
        self.assertEqual({name: size for name, size in peak["categories"].items() if size > 0}, categories)
        blocks = {}
        for block in peak["blocks"]:
            if block["storage"] == "own" and block["bytes"] > 0:
                blocks[block["category"]] = blocks.get(block["category"], 0) + 1
        counts = {}
        for row in self.shown("buffer"):
            counts[row["category"]] = counts.get(row["category"], 0) + int(row["count"])
        self.assertEqual(blocks, counts)
        sets = {(row["category"], row["unit"], int(row["bytes"])) for row in self.shown("buffer") if "_full" in row["category"]}
        self.assertEqual({(block["category"], block["unit"], block["bytes"]) for block in peak["blocks"]
                          if "_full" in block["category"]}, sets)

    def test_page_text_names_peak_statistic_and_place(self):
        peak = self.open("pre")["memory"]["peak"]
        text = self.find("#peak").text
        self.assertEqual(str(peak["allocated"]), self.find("#peak").get_attribute("data-bytes"))
        for part in ("allocated_bytes.all.peak", f"step {peak['step']}", f"of {peak['unit']}", peak["phase"], f"event {peak['event']}"):
            self.assertIn(part, text)

    def test_page_clock_toggled_shows_device_time_and_back(self):
        self.open("pre")
        issue_steps = self.js("return document.querySelectorAll('#figure .band').length")
        self.find("#clock-device").click()
        self.assertEqual("device", self.find("#figure").get_attribute("data-clock"))
        self.assertIn("device time, ms", self.find("#figure").text)
        for lane in ("compute", "gather", "reduce", "host"):
            self.assertIn(lane, self.find("#figure .lanes").text)
        operations = self.js("return window.headroom.steps.map((step) => step.operations.start.length)")
        self.assertTrue(all(count > 0 for count in operations), operations)
        self.press("c")
        self.assertEqual("issue", self.find("#figure").get_attribute("data-clock"))
        self.assertEqual(issue_steps, self.js("return document.querySelectorAll('#figure .band').length"))

    def test_page_step_chosen_is_shown(self):
        self.open("pre")
        steps = self.js("return window.headroom.overview.step")
        self.assertEqual([0, 1, 2, 3], steps)
        self.js("const step = document.getElementById('step'); step.value = 3; step.dispatchEvent(new Event('change'))")
        self.assertEqual("3", self.find("#figure").get_attribute("data-step"))
        self.press("[")
        self.assertEqual("2", self.find("#figure").get_attribute("data-step"))
        peaks = self.js("return window.headroom.steps.map((step) => step.peak.bytes)")
        self.assertEqual(peaks, self.js("return window.headroom.overview.allocated"))

    def test_page_statistics_equal_the_reports(self):
        report = self.open("pre")["memory"]
        rank = report["per_rank"][0]
        shown = self.js("return Object.fromEntries(Array.from(document.querySelectorAll('[data-statistic]'),"
                        " (row) => [row.dataset.statistic, Number(row.dataset.value)]))")
        names = [name for name in rank if name in shown]
        for name in ("allocated_bytes.all.peak", "active_bytes.all.peak", "reserved_bytes.all.peak", "num_ooms"):
            self.assertIn(name, names)
        self.assertEqual({name: rank[name] for name in names}, {name: shown[name] for name in names})

    def test_page_external_bytes_are_shown_with_their_sources(self):
        external = self.open("pre")["memory"]["per_rank"][0]["external"]
        shown = self.js("return Array.from(document.querySelectorAll('[data-external]'), (row) => row.dataset.external)")
        self.assertEqual(set(external) | {"unattributed"}, set(shown))
        self.assertTrue(self.js("return Object.values(JSON.parse(window.headroom.notes.external)).every((one) => one.source)"))

    def test_page_pre_holds_next_beside_current_and_gradients_and_post_does_not(self):
        """At the highest instant of each backward computation: whose parameters and gradients the page shows."""
        held = {}  # (policy, unit): {state: bytes}
        for prefetch, states in (("pre", {"current", "next"}), ("post", {"current"})):
            self.open(prefetch)
            self.js("document.getElementById('step').value = 2;"
                    "document.getElementById('step').dispatchEvent(new Event('change'))")
            visits = self.js("""
                const data = window.headroom, step = data.steps[2], marks = step.marks;
                return marks.event.map((event, i) => ({event, unit: data.units[marks.unit[i]], name: data.names[marks.name[i]]}))
                  .filter((mark) => mark.name === "backward attention")""")
            self.assertEqual(["h.1", "h.0"], [visit["unit"] for visit in visits])
            for visit in visits:
                self.js("window.headroom.select(arguments[0])", visit["event"])
                rows = [(row["category"], row["unit"]) for row in self.shown("buffer") if "_full" in row["category"]]
                parameters = {category.split(".")[1]: unit for category, unit in rows if category.startswith("parameter")}
                self.assertEqual(states, set(parameters), prefetch)
                self.assertEqual(visit["unit"], parameters["current"])
                self.assertIn(("gradient_full.computing", visit["unit"]), rows)
                held[prefetch, visit["unit"]] = {
                    row["category"].split(".")[1]: int(row["bytes"]) for row in self.shown("band")
                    if row["category"].startswith("parameter_full")}
        for unit in ("h.1", "h.0"):
            pre, post = held["pre", unit], held["post", unit]
            self.assertEqual(pre["next"], sum(pre.values()) - sum(post.values()), "what the next unit costs")

    def test_page_keys_zoom_hide_and_pin(self):
        self.open("pre")
        self.press("p")
        self.assertIn("pinned", self.find("#panel").text)
        before = self.find("#panel").get_attribute("data-instant")
        self.press(Keys.ARROW_RIGHT)
        self.assertEqual(int(before) + 1, int(self.find("#panel").get_attribute("data-instant")))
        self.press("s")
        bands = self.js("return Array.from(document.querySelectorAll('#figure .band'), (band) => band.dataset.band)")
        self.assertTrue(bands and all(re.match(r"(parameter|gradient)_full", band) for band in bands), bands)
        self.press("+")
        self.press("0")
        self.press(Keys.ESCAPE)
        self.assertNotIn("pinned", self.find("#panel").text)

    def test_page_narrow_window_has_no_sideways_scrolling(self):
        self.open("pre")
        for width in (800, 1280, 1920):
            self.browser.set_window_size(width, 900)
            self.assertLessEqual(self.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth"), 0)
        self.browser.set_window_size(1280, 800)

    def test_page_file_refers_to_nothing_outside(self):
        text = self.runs["pre"][0].read_text()
        self.assertEqual([], re.findall(r"(?:src|href)\s*=\s*[\"']?https?:[^\"'\s>]*", text))
        self.assertEqual([], re.findall(r"@import|url\(\s*[\"']?https?:", text))
        self.assertIn("Redistribution and use in source and binary forms", text)  # as d3's licence asks

    def test_inspect_makes_the_same_page_and_picture(self):
        page, picture, _ = self.runs["pre"]
        again, drawn = self.folder / "again.html", self.folder / "again.png"
        subprocess.run([PROGRAM, "inspect", page.with_suffix(".events"), "--report", again, "--png", drawn], check=True,
                       timeout=DEADLINE_SECONDS, stdout=subprocess.DEVNULL)
        self.assertEqual(page.read_bytes(), again.read_bytes())
        self.assertEqual(picture.read_bytes(), drawn.read_bytes())

    def test_picture_is_a_png_of_its_size(self):
        head = self.runs["pre"][1].read_bytes()[:24]
        self.assertEqual(b"\x89PNG\r\n\x1a\n", head[:8])
        self.assertEqual((1600, 900), struct.unpack(">II", head[16:24]))


if __name__ == "__main__":
    if not shutil.which("chromedriver"):
        print("skipped: no chromedriver: install chromium and chromium-driver")
        sys.exit(77)
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
