"""The texts that transformers renders from the chat templates in tests/golden/templates.

    python tools/goldens/templates.py tests/golden/templates

reads the folder's *.jinja and cases.json and writes expected.json: for each case, in order, the text or
{"error": what the template raised}. Needs transformers and jinja2; no torch, no network.
"""

import datetime
import json
import pathlib
import sys

import jinja2
import transformers
from transformers.utils.chat_template_utils import render_jinja_template

NOW = datetime.datetime(2026, 3, 5, 14, 7, 9)


def render(folder, cases, template, conversation, kind="", arguments={}):
    try:
        [text], _ = render_jinja_template(
            conversations=[cases["conversations"][conversation]],
            chat_template=(folder / f"{template}.jinja").read_text("utf-8"),
            tools=cases["tools"] if kind == "tools" else None,
            add_generation_prompt=kind != "closed",
            bos_token="<s>",
            eos_token="</s>",
            strftime_now=NOW.strftime,
            **arguments,
        )
        return text
    except jinja2.TemplateError as error:
        return {"error": str(error)}


def main(folder):
    cases = json.loads((folder / "cases.json").read_text("utf-8"))
    expected = [render(folder, cases, *case) for case in cases["cases"]]
    text = json.dumps(expected, ensure_ascii=False, indent=1)
    (folder / "expected.json").write_text(text + "\n", "utf-8")
    print(f"{len(expected)} cases by transformers {transformers.__version__}")


main(pathlib.Path(sys.argv[1]))
