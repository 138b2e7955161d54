"""The demo's repository and its tasks: a small shop with real code and real tests."""

from __future__ import annotations

from dataclasses import dataclass

FILES: dict[str, str] = {
    "README.md": "# Shop\n\nA small shop, made to be worked on.\n",
    "services/__init__.py": "",
    "services/tax/__init__.py": "",
    "services/tax/rates.py": '"""Tax on a net price in cents."""\n\n\ndef tax(net: int, percent: int) -> int:\n    return net * percent // 100\n',
    "services/invoice/__init__.py": "",
    "services/invoice/total.py": '"""The total of an invoice in cents."""\n\n\ndef total(prices: list[int]) -> int:\n    return sum(prices)\n',
    "services/search/__init__.py": "",
    "services/search/index.py": '"""Finds products by a word of their name."""\n\n\ndef find(names: list[str], word: str) -> list[str]:\n    return [name for name in names if word in name]\n',
    "services/promo/__init__.py": "",
    "services/promo/codes.py": '"""Promotion codes."""\n\nCODES: dict[str, int] = {}\n\n\ndef discount(price: int, code: str) -> int:\n    return price - CODES.get(code, 0)\n',
    "web/search/copy.txt": "Search\n",
    "docs/index.md": "# Documents\n",
    "tests/__init__.py": "",
    "tests/test_shop.py": (
        "import unittest\n\nfrom services.invoice.total import total\nfrom services.promo.codes import discount\n"
        "from services.search.index import find\nfrom services.tax.rates import tax\n\n\n"
        "class Shop(unittest.TestCase):\n"
        "    def test_tax_never_takes_more_than_the_price(self):\n        self.assertLessEqual(tax(999, 19), 999)\n\n"
        "    def test_total_adds_up(self):\n        self.assertEqual(total([100, 250]), 350)\n\n"
        "    def test_find_finds_by_word(self):\n        self.assertIn('red shoe', find(['red shoe', 'hat'], 'shoe'))\n\n"
        "    def test_discount_is_never_negative(self):\n        self.assertGreaterEqual(discount(100, 'HALF'), 0)\n\n\n"
        "if __name__ == '__main__':\n    unittest.main()\n"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A file that a scripted agent writes, after having "thought" about it."""

    path: str
    text: str
    think_ms: int = 500
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A task of the demo and what its agent does, round by round.

    Attributes:
        scope: what it starts with; empty grows.
        after: the key of a task that it needs.
        rounds: what is written in each round; the last one is repeated.
        question: what the agent asks instead of a result.
        completes: whether the agent, once it is done, tries to complete the lease by itself.
    """

    key: str
    title: str
    rounds: tuple[tuple[Step, ...], ...] = ()
    scope: tuple[str, ...] = ()
    after: str = ""
    question: str = ""
    said: str = "Done."
    completes: bool = False


def _code(name: str, body: str) -> str:
    return f'"""{name}"""\n\n\n{body}'


_TAX = "def tax(net: int, percent: int) -> int:\n    return (net * percent + 50) // 100\n"
_EXEMPT = (
    "EXEMPT = frozenset({'book'})\n\n\n"
    "def tax(net: int, percent: int, kind: str = '') -> int:\n"
    "    return 0 if kind in EXEMPT else (net * percent + 50) // 100\n"
)
_TOTAL = "def total(prices: list[int]) -> int:\n    return sum(prices)\n\n\ndef lines(prices: list[int]) -> list[str]:\n    return [f'{p / 100:.2f}' for p in prices]\n"

SCRIPTS: tuple[Script, ...] = (
    Script(
        key="tax-rounding",
        title="Tax: round half up",
        scope=("services/tax",),
        rounds=(
            (
                Step(
                    path="services/tax/rates.py",
                    text=_code("Tax on a net price in cents.", _TAX),
                    think_ms=1_200,
                    commit="tax: round half up",
                ),
                Step(
                    path="services/tax/NOTES.md",
                    text="Rounds half up, to the cent.\n",
                    think_ms=900,
                ),
            ),
        ),
        said="Tax rounds half up now.",
    ),
    Script(
        key="invoice-pdf",
        title="Invoice: lines for the PDF",
        scope=("services/invoice",),
        rounds=(
            (
                Step(
                    path="services/invoice/total.py",
                    text=_code("The total of an invoice in cents.", _TOTAL),
                    think_ms=600,
                ),
                Step(
                    path="services/invoice/pdf.py",
                    text=_code("Lines of a PDF.", "HEADER = 'Invoice'\n"),
                    think_ms=600,
                ),
                Step(
                    path="services/invoice/NOTES.md",
                    text="Lines have two decimals.\n",
                    think_ms=2_500,
                ),
            ),
        ),
        said="The invoice has lines now.",
    ),
    Script(
        key="search-copy",
        title="Search: friendlier words",
        scope=("web/search",),
        rounds=(
            (
                Step(path="web/search/copy.txt", text="What are you looking for?\n", think_ms=600),
                Step(
                    path="web/search/empty.txt",
                    text="Nothing found. Try another word.\n",
                    think_ms=2_000,
                ),
            ),
        ),
        said="The search speaks kindly.",
        completes=True,
    ),
    Script(
        key="tax-exempt",
        title="Tax: books are exempt",
        scope=("services/tax",),
        rounds=(
            (
                Step(
                    path="services/tax/exempt.py",
                    text=_code("What is exempt.", _EXEMPT),
                    think_ms=900,
                ),
            ),
        ),
        said="Books are exempt.",
    ),
    Script(
        key="rename-charge",
        title="Invoice: say payment, not charge",
        scope=("services/invoice",),
        after="invoice-pdf",
        rounds=(
            (
                Step(
                    path="services/invoice/payment.py",
                    text=_code("Payments.", "WORD = 'payment'\n"),
                    think_ms=900,
                ),
            ),
        ),
        said="It says payment.",
    ),
    Script(
        key="webhooks-docs",
        title="Docs: a quickstart for webhooks",
        rounds=(
            (
                Step(
                    path="docs/webhooks.md",
                    text="# Webhooks\n\nPoint us at a URL.\n",
                    think_ms=900,
                    commit="docs: webhooks",
                ),
            ),
        ),
        said="The quickstart is there.",
    ),
    Script(
        key="promo-codes",
        title="Promo: the code HALF",
        scope=("services/promo",),
        rounds=(
            (
                Step(
                    path="services/promo/codes.py",
                    think_ms=700,
                    text=_code(
                        "Promotion codes.",
                        "CODES = {'HALF': 500}\n\n\ndef discount(price: int, code: str) -> int:\n    return price - CODES.get(code, 0)\n",
                    ),
                ),
            ),
            (
                Step(
                    path="services/promo/codes.py",
                    think_ms=700,
                    text=_code(
                        "Promotion codes.",
                        "CODES = {'HALF': 50}\n\n\ndef discount(price: int, code: str) -> int:\n    return max(0, price - price * CODES.get(code, 0) // 100)\n",
                    ),
                ),
            ),
        ),
        said="HALF takes half.",
    ),
    Script(
        key="headers",
        title="All services: a licence line",
        scope=("services",),
        rounds=((Step(path="services/LICENCE", text="Apache-2.0\n", think_ms=800),),),
        said="The line is there.",
    ),
    Script(
        key="readme",
        title="Readme: how to run the tests",
        scope=("README.md",),
        rounds=(
            (
                Step(
                    path="README.md",
                    text="# Shop\n\nRun the tests: python -m unittest\n",
                    think_ms=700,
                ),
            ),
        ),
        said="The readme says how.",
    ),
    Script(
        key="sdk-version",
        title="Docs: an example with the SDK",
        question="Which version of the SDK should the example use?",
    ),
    Script(
        key="search-case",
        title="Search: ignore upper case",
        scope=("services/search",),
        rounds=(
            (
                Step(
                    path="services/search/index.py",
                    think_ms=800,
                    text=_code(
                        "Finds products by a word of their name.",
                        "def find(names: list[str], word: str) -> list[str]:\n    return [name for name in names if word.lower() in name.lower()]\n",
                    ),
                ),
            ),
        ),
        said="Case is ignored.",
    ),
    Script(
        key="changelog",
        title="Docs: begin a changelog",
        rounds=(
            (Step(path="docs/changelog.md", text="# Changelog\n\n- everything\n", think_ms=700),),
        ),
        said="The changelog begins.",
    ),
)

KILLED = "invoice-pdf"
FROZEN = "search-copy"


def script_titled(title: str) -> Script:
    """The script of the task with this title."""
    return next(script for script in SCRIPTS if script.title == title)
