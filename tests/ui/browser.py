"""A browser that opens Dagster's pages, waits for texts, and clicks on elements, as a person does."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from selenium import webdriver
from selenium.common.exceptions import ElementNotInteractableException, StaleElementReferenceException
from selenium.webdriver.common.by import By

from tests.ui.waiting import until

_TIMEOUT_S = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """Chromium on Dagster's pages. It saves a screenshot in `pictures` if a page does not show what it should."""

    driver: webdriver.Chrome
    url: str
    pictures: Path

    @classmethod
    def of(cls, driver: webdriver.Chrome, url: str, home: Path) -> Self:
        """A browser on the pages of a webserver."""
        pictures = home / "pictures"
        pictures.mkdir()
        return cls(driver=driver, url=url, pictures=pictures)

    def open(self, path: str, *texts: str) -> str:
        """The text of a page, once it shows all of `texts`."""
        self.driver.get(self.url + path)
        return self.shows(*texts)

    def shows(self, *texts: str) -> str:
        """The text of the page, once it shows all of `texts`."""
        address = self.driver.current_url
        try:
            until(lambda: all(text in self.text for text in texts), f"{texts} in {address}", timeout_s=_TIMEOUT_S)
        except AssertionError:
            self.driver.save_screenshot(str(self.pictures / "failed.png"))
            raise
        return self.text

    @property
    def text(self) -> str:
        """The words that the page shows now, each followed by one space."""
        # The property `text` of Selenium examines each element with a script, which takes seconds on a large page.
        text = self.driver.execute_script("return document.body ? document.body.innerText : ''")
        return "".join(f"{word} " for word in text.split())

    def click(self, label: str) -> None:
        """Click the element with this text, as soon as it exists and can be clicked."""
        until(lambda: self._clicked(f"//*[normalize-space(text())='{label}']"), f"{label!r}", timeout_s=_TIMEOUT_S)

    def type(self, keys: str) -> None:
        """Type into the field that has the focus of the keyboard."""
        self.driver.switch_to.active_element.send_keys(keys)

    def scroll_to(self, label: str) -> None:
        """Scroll until the element with this text is at the top."""
        element = self.driver.find_element(By.XPATH, f"//*[normalize-space(text())='{label}']")
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'start'})", element)

    def plots(self) -> int:
        """The number of drawings on the page."""
        return len(self.driver.find_elements(By.TAG_NAME, "canvas"))

    def click_menu_of(self, label: str) -> None:
        """Click the small button that opens a menu: it comes after the button with this text."""
        xpath = f"//button[.//*[normalize-space(text())='{label}']]/following::button[1]"
        until(lambda: self._clicked(xpath), f"the menu button after {label!r}", timeout_s=_TIMEOUT_S)

    def expand(self, label: str) -> None:
        """Click the arrow before the element with this text, so that the list shows what belongs to it."""
        xpath = f"//*[normalize-space(text())='{label}']/preceding::*[@aria-label='arrow_drop_down'][1]"
        until(lambda: self._clicked(xpath), f"the arrow before {label!r}", timeout_s=_TIMEOUT_S)

    def _clicked(self, xpath: str) -> bool:
        for element in self.driver.find_elements(By.XPATH, xpath):
            with suppress(StaleElementReferenceException, ElementNotInteractableException):
                element.click()  # raises one of these two errors if another element covers it
                return True
        return False
