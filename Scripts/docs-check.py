#!/usr/bin/env python3
"""Checks the documents: sizes, links, facts, names, Swift examples and commands.

    python3 Scripts/docs-check.py            everything; needs the build of `Scripts/build.sh --build-tests`
    python3 Scripts/docs-check.py links      one of: sizes links facts names swift commands

- sizes: README, ARCHITECTURE and others are at most as long as `SIZES` says.
- links: each relative link, anchor, picture and `<doc:…>` leads somewhere.
- facts: the numbers of README are in what it links to, and the counts of faults and scenarios are those of the server.
- names: each path, command-line script, type, member of a type and test suite in backticks exists.
- swift: each ```swift block of a document and of a doc comment is type-checked against the modules of the debug build. The blocks of a
  document are one program; `<!-- swift … -->` before a block is code that the reader does not see, and `<!-- swift new -->` begins another
  program. The blocks of a tutorial (`EXTRACTS`) are lines of its sources instead. The main types have an example in their doc comment.
- commands: each ```console block of a document is run line by line, and prints what is written below. A server that a command starts
  listens on a free port. Times, sizes and numbers of entries may differ, a line `…` stands for any lines, and `…` within a line for any text. A
  ```swift main NAME block is compiled first, and `swift run NAME` runs it; the package of a ```swift manifest block is loaded.
"""

import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.parse

import modules

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEBUG = ROOT / ".build" / "debug"
# Lines or KiB that a reader is willing to read.
SIZES = {
    "README.md": (130, "lines"),
    "ARCHITECTURE.md": (14, "KiB"),
    "Documentation/Reliability.md": (8, "KiB"),
    "Benchmarks/README.md": (60, "lines"),
    "CHANGELOG.md": (25, "lines"),
}
# A tutorial whose blocks are extracts of its own sources.
EXTRACTS = {"Documentation/NewsReader/README.md": "Documentation/NewsReader"}
SOURCES = (".swift", ".c", ".h", ".py", ".js", ".mjs", ".sh", ".json", ".html", ".css", ".modulemap", ".txt", ".lua", ".1")
# Words in backticks that are names of something else: products, protocols, platforms.
FOREIGN = set(
    "Accept Authorization Age Date ETag Vary Via Host Link Location Refresh Origin Range Server Warning Expires Content Forwarded "
    "Set-Cookie URLCache URLSession NSCache InputStream NSAllowsLocalNetworking TestTarget".split()
)

# Each has an example in its doc comment.
MAIN_TYPES = (
    "APIClient LarderCache Resource PagedResource Timeline WriteBehind WriteThrough Outbox HTTPSource BearerSession HTTPCache ImagePipeline "
    "NetworkMonitor MemoryGuard SocketTransport MemoryTier ManualClock ScriptedTransport MockBackend MockWorld"
).split()


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def documents():
    names = git("ls-files", "--cached", "--others", "--exclude-standard", "*.md").split()
    return [name for name in names if (ROOT / name).exists()]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def prose(text):
    """The text with the lines of fenced and indented code blanked."""
    lines, fenced = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            fenced = not fenced
            lines.append("")
        else:
            lines.append("" if fenced or line.startswith("    ") else line)
    return "\n".join(lines)


# MARK: Sizes


def check_sizes():
    for name, (limit, unit) in SIZES.items():
        text = read(name)
        size = text.count("\n") if unit == "lines" else len(text.encode()) / 1024
        if size > limit:
            yield f"{name}: {size:.1f} {unit}; at most {limit}"


# MARK: Links

LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")


def anchors(name):
    found = set()
    for line in prose(read(name)).split("\n"):
        if heading := re.match(r"#+ (.*)", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).replace("`", "").lower()
            found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


def check_links():
    everything = "".join(read(name) for name in documents())
    for picture in (ROOT / "Documentation" / "images").iterdir():
        if picture.name not in everything:
            yield f"Documentation/images/{picture.name}: no document shows it"
    catalog = ROOT / "Documentation" / "Larder.docc"
    articles = {path.stem for path in catalog.glob("*.md")} | {"Reliability"}
    for name in documents():
        text = prose(read(name))
        for number, line in enumerate(text.split("\n"), 1):
            for article in re.findall(r"<doc:([\w-]+)>", line):
                if article not in articles:
                    yield f"{name}:{number}: there is no article {article}"
            for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                target = match.group(1) or match.group(2)
                if re.match(r"https?:|mailto:", target):
                    continue
                path, _, anchor = urllib.parse.unquote(target).partition("#")
                file = (ROOT / name).parent / path if path else ROOT / name
                if not file.exists():
                    yield f"{name}:{number}: {target} leads nowhere"
                elif anchor and file.suffix == ".md" and anchor not in anchors(os.path.relpath(file, ROOT)):
                    yield f"{name}:{number}: {target} names no heading of that file"


# MARK: Facts


def check_facts():
    """The numbers of README are those of what it links to, of the sources and of the command."""
    text = read("README.md")
    for label, target in re.findall(r"(?<!!)\[([^\]]*\d[^\]]*)\]\(([^)#]+)[^)]*\)", text):
        for number in re.findall(r"\d[\d,.]*", label):
            if number not in re.findall(r"\d[\d,.]*\d|\d", read(target)):
                yield f"README.md: [{label}] is not in {target}: {number}"
    kinds = re.search(r"static let all[^=]*= \[([^\]]*)\]", read("Server/LarderServer/Faults/FaultKind.swift"))
    faults = len(re.findall(r"[\w.]+", kinds.group(1))) if kinds else 0
    if not re.search(rf"\b{faults}\s+fault types", text):
        yield f"README.md: FaultAction has {faults} types of faults"
    if (DEBUG / "larder-server").exists():
        listing = subprocess.run([str(DEBUG / "larder-server"), "scenarios"], capture_output=True, text=True).stdout
        scenarios = len(re.findall(r"(?m)^[a-z]", listing))
        if f"{scenarios} scenarios" not in text:
            yield f"README.md: larder-server has {scenarios} scenarios"


# MARK: Names

TYPE = re.compile(r"^[A-Z][a-z0-9]*(?:[A-Z]+[a-z0-9]*)+$")


def known_words():
    words = set()
    for name in git("ls-files", "--cached", "--others", "--exclude-standard").split("\n"):
        if name.endswith(SOURCES) or name in ("Makefile", "Package.swift", ".ci/run"):
            path = ROOT / name
            if path.exists() and path.stat().st_size < 2_000_000:
                words.update(re.findall(r"\w+", path.read_text(encoding="utf-8", errors="ignore")))
                words.update(re.findall(r"\w+", name))
    return words


def known_members():
    """The names of declared properties, functions and cases."""
    members = set()
    for name in git("ls-files", "--cached", "--others", "--exclude-standard", "*.swift").split("\n"):
        if name and (ROOT / name).exists():
            text = read(name)
            members.update(re.findall(r"\b(?:let|var|func) (\w+)", text))
            for cases in re.findall(r"^ *(?:indirect )?case (\w[^:\n]*)", text, re.MULTILINE):
                members.update(re.findall(r"\w+", cases))
    return members


# Names of files, of HTTP, and of the documents that the tables are about.
OTHERS = {"CACHEDIR", "ARCHITECTURE", "ETag", "ignoringCache", "cacheDontLoad"}
DECLARES = r"\b(?:struct|class|enum|actor|protocol|typealias|extension) (?:[\w.]+\.)?"


def known_types():
    """The members that the files with a declaration or an extension of a type declare, by type."""
    types = {}
    for name in git("ls-files", "--cached", "--others", "--exclude-standard", "*.swift").split("\n"):
        if name and (ROOT / name).exists():
            text = read(name)
            declared = set(re.findall(r"\b(?:let|var|func|struct|class|enum|typealias) (\w+)", text)) | {"init", "subscript"}
            for cases in re.findall(r"^ *(?:indirect )?case (\w[^:\n]*)", text, re.MULTILINE):
                declared.update(re.findall(r"\w+", cases))
            for kind in set(re.findall(DECLARES + r"(\w+)", text)):
                types.setdefault(kind, set()).update(declared)
    return types


def check_seeds(types, members):
    """The tables of Seeds.md name types, members and suites that exist."""
    name = "Documentation/Seeds.md"
    for number, line in enumerate(read(name).split("\n"), 1):
        for span in re.findall(r"`([\w.]+)(?:\([\w:]*\))?`", line) if line.startswith("|") else ():
            first, *rest = span.split(".")
            if first in OTHERS:
                continue
            if first[:1].isupper() and first not in types:
                yield f"{name}:{number}: no type is named {first}"
            for kind, member in zip([first, *rest], rest):
                if kind in types and member not in types[kind] and member not in types:
                    yield f"{name}:{number}: {kind} has no {member}"
            if not rest and first[:1].islower() and re.search(r"[A-Z]", first) and first not in members:
                yield f"{name}:{number}: nothing is named {first}"


def check_names():
    words, members = known_words(), known_members()
    yield from check_seeds(known_types(), members)
    chapters = set(re.findall(r"\w+", re.search(r"case ([\w, ]+)", read("ClientSDK/LarderCommand/Arguments/TourName.swift")).group(1)))
    commands = {"help", *re.findall(r'CommandEntry\(\s*"(\w+)', read("ClientSDK/LarderCommand/Arguments/Arguments+Options.swift"))}
    for name in documents():
        base = (ROOT / name).parent
        # Drawings name functions and types.
        for drawing in re.findall(r"^```text\n([\s\S]*?)^```", read(name), re.MULTILINE):
            for word in re.findall(r"\b[A-Z]\w+\b|(?<=\w\.)[a-z]\w+", drawing):
                if word not in words:
                    yield f"{name}: a drawing names {word}, and nothing has that name"
        for number, line in enumerate(prose(read(name)).split("\n"), 1):
            for span in re.findall(r"`+([^`]+)`+", line):
                if "/" in span and re.fullmatch(r"[\w.+/-]+", span) and re.match(r"(Shared|Server|ClientSDK|Tests|Documentation|Scripts|Benchmarks|Fixtures)/", span):
                    if not (ROOT / span).exists() and not (base / span).exists():
                        yield f"{name}:{number}: `{span}` does not exist"
                    continue
                command = re.match(r"(?:larder )?tour ([a-z]+)|larder ([a-z]+)", span)
                if command and (command[1] or "reads") not in chapters or command and command[2] and command[2] not in commands:
                    yield f"{name}:{number}: `{span}` is no command or chapter"
                if not re.fullmatch(r"/?[\w.+/]+(\([\w:]*\))?(?:, .*)?", span):
                    continue
                for word in re.findall(r"(?<=\w\.)[a-z]\w*", span) if re.match(r"[A-Z]\w*\.", span) else ():
                    if word not in members and f".{word}" not in (*SOURCES, ".md"):
                        yield f"{name}:{number}: nothing in the sources declares {word}"
                for word in re.findall(r"\w+", span):
                    if TYPE.match(word) and word not in words and word not in FOREIGN:
                        yield f"{name}:{number}: nothing is named {word}"


# MARK: Swift

BLOCK = re.compile(r"^(?:<!-- swift(?P<hidden>[\s\S]*?)-->|```swift\n(?P<code>[\s\S]*?)^```)$", re.MULTILINE)
# A whole main.swift, which the commands of the document run under this name by `swift run`.
MANIFEST = re.compile(r"^```swift manifest\n(?P<code>[\s\S]*?)^```$", re.MULTILINE)
MAIN = re.compile(r"^```swift main (?P<name>\w+)\n(?P<code>[\s\S]*?)^```$", re.MULTILINE)
COMMENT = re.compile(r"^( *)/// ```swift\n((?:\1///.*\n)*?)\1/// ```$", re.MULTILINE)
HOISTED = re.compile(
    r"^(?:(?:public|fileprivate|private|internal|final|@\w+(?:\(.*\))?|nonisolated|indirect) )*(?:struct|class|enum|actor|extension|protocol)\b|^@(?:Test|Suite)\b|^import\b"
)
# What an example in a doc comment may use without saying where it comes from.
CONTEXT = {
    "Article": 'struct Article: CacheEntity { static let entityType = "article"; var id: String; var title: String; var isStarred = false }',
    "Transfer": "struct Transfer: Codable, Sendable { var to: String; var amount: Int }",
    "Balance": "struct Balance: Codable, Sendable, Equatable { var amount: Int }",
}
PARAMETERS = [
    ("client", "APIClient"),
    ("larder", "LarderCache"),
    ("article", "Resource<Article>"),
]


class Program:
    """The examples of one scope: declarations of types, and a function with the statements."""

    def __init__(self, name):
        self.name = name
        self.imports, self.types, self.statements = [], [], []

    def add(self, code, line):
        """Separates declarations of types at the left edge from statements."""
        inside = None
        for offset, text in enumerate(code.split("\n")):
            place = line + offset
            if inside is None and text and not text[0].isspace() and HOISTED.match(text):
                if text.startswith("import"):
                    self.imports.append(text)
                    continue
                if text.startswith("@") and not text.rstrip().endswith(("{", "}")):
                    inside = self.types
                elif text.rstrip().endswith("{"):
                    inside = self.types
                self.types.append((place, re.sub(r"^((?:@\S+(?:\(.*?\))? )*)public ", r"\1", text)))
                continue
            if inside is not None:
                inside.append((place, text))
                if text == "}":
                    inside = None
                elif text.rstrip().endswith("}") and text and not text[0].isspace():
                    inside = None
                continue
            self.statements.append((place, text))

    def text(self, index, parameters, context):
        lines = []

        def put(entries):
            last = None
            for place, text in entries:
                # Not within a statement, where the directive is an error.
                if place - 1 != last:
                    lines.append(f'#sourceLocation(file: "{self.name}", line: {place})')
                lines.append(text)
                last = place
            if entries:
                lines.append("#sourceLocation()")

        private = [
            (place, re.sub(r"^(?=(?:final |indirect )?(?:struct|class|enum|actor|protocol)\b)", "fileprivate ", text)) for place, text in self.types
        ]
        put(private)
        for each in context:
            lines.append("fileprivate " + each)
        lines.append(f"fileprivate func example{index}({parameters}) async throws {{")
        put(self.statements)
        lines.append("}")
        return "\n".join(lines) + "\n"


def programs_of(name):
    text = read(name)
    program = Program(name)
    found = [program]
    for match in BLOCK.finditer(text):
        hidden = match.group("hidden")
        group = "hidden" if hidden is not None else "code"
        code = match.group(group)
        line = text.count("\n", 0, match.start(group)) + 1
        if hidden is not None and hidden.split("\n")[0].strip() == "new":
            program = Program(name)
            found.append(program)
            code = code.replace("new", "", 1)
        program.add(code, line)
    return [each for each in found if each.statements or each.types]


def examples():
    """Each program of the documents and of doc comments, as (Program, is a doc comment)."""
    for name in documents():
        if name not in EXTRACTS:
            for program in programs_of(name):
                yield program, False
    for name in git("ls-files", "*.swift").split():
        if not name.startswith(("ClientSDK/", "Server/", "Shared/")) or not (ROOT / name).exists():
            continue
        text = read(name)
        for match in COMMENT.finditer(text):
            program = Program(name)
            code = "\n".join(line.strip()[3:].removeprefix(" ") for line in match.group(2).rstrip("\n").split("\n"))
            program.add(code, text.count("\n", 0, match.start(2)) + 1)
            module = name.split("/")[1]
            program.imports += ["import Larder"] if name.startswith("ClientSDK") else []
            if module not in ("Larder",) and f"import {module}" not in program.imports:
                program.imports.append(f"import {module}")
            yield program, True


def check_swift():
    declarations = "\n".join(read(name) for name in git("ls-files", "*.swift").split() if name.startswith(("Shared/", "Server/", "ClientSDK/")) and (ROOT / name).exists())
    for name in MAIN_TYPES:
        if not re.search(rf"^/// ```\n(?:@\w+ )*public (?:final )?(?:class|struct) {name}\b", declarations, re.MULTILINE):
            yield f"swift: the doc comment of {name} does not end with an example"
    for name, folder in EXTRACTS.items():
        sources = {line.strip() for path in (ROOT / folder).rglob("*.swift") if ".build" not in path.parts for line in path.read_text().split("\n")}
        text = read(name)
        for match in BLOCK.finditer(text):
            for offset, line in enumerate((match.group("code") or "").split("\n")):
                if line.strip() and line.strip() not in sources:
                    yield f"{name}:{text.count(chr(10), 0, match.start('code')) + 1 + offset}: no source of {folder} has this line: {line.strip()}"
    modules = DEBUG / "Modules"
    if not modules.exists():
        yield "swift: there is no debug build; run Scripts/build.sh --build-tests first"
        return
    with tempfile.TemporaryDirectory() as directory:
        files = []
        for index, (program, is_comment) in enumerate(examples()):
            code = "\n".join(text for _, text in program.types + program.statements)
            declared = set(re.findall(r"\b(?:struct|class|enum|actor) (\w+)", code))
            context, parameters = [], ""
            if is_comment:
                given = [(each, kind) for each, kind in PARAMETERS if re.search(rf"\b{each}\b", code) and not re.search(rf"\blet {each}\b", code)]
                used = code + " ".join(kind for _, kind in given)
                context = [text for each, text in CONTEXT.items() if re.search(rf"\b{each}\b", used) and each not in declared]
                parameters = ", ".join(f"{each}: {kind}" for each, kind in given)
                if (given or context) and "import Larder" not in program.imports:
                    program.imports.append("import Larder")
            imports = sorted(set(program.imports))
            if not any(each.startswith("import Larder") for each in imports):
                imports.append("import Larder")
            path = pathlib.Path(directory) / f"example{index}.swift"
            path.write_text("\n".join(imports) + "\n" + program.text(index, parameters, context), encoding="utf-8")
            files.append(str(path))
        swiftc = pathlib.Path(subprocess.run(["which", "swiftc"], capture_output=True, text=True, check=True).stdout.strip()).resolve()
        plugins = swiftc.parent.parent / "lib" / "swift" / "host" / "plugins"
        command = ["swiftc", "-typecheck", "-continue-building-after-errors", "-swift-version", "6", "-module-name", "Examples", "-parse-as-library", "-I", str(modules)]
        for folder in ("Shared/CSQLite", "Server/CSystem", "Server/CDocuments/include"):
            command += ["-I", str(ROOT / folder)]
        command += ["-plugin-path", str(plugins), "-plugin-path", str(plugins / "testing"), *files]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        for line in (result.stdout + result.stderr).split("\n"):
            if re.match(r"[^|]*: (error|warning): ", line) and "was never used" not in line and "never mutated" not in line:
                yield line.replace(directory + "/", "").strip()
        if "-v" in sys.argv:
            print(f"swift: {len(files)} programs")


# MARK: Commands

CONSOLE = re.compile(r"^```console\n([\s\S]*?)^```$", re.MULTILINE)
# A file that the commands of the document use.
FILE = re.compile(r"^```python (?P<name>[\w.]+)\n(?P<code>[\s\S]*?)^```$", re.MULTILINE)


def steps(block):
    """The commands of a block, each with its expected output. A command goes on behind a backslash."""
    found = []
    for line in block.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1][0] += "\n" + line
        elif found:
            found[-1][1].append(line)
    return found


# Numbers that differ between runs: times, numbers of journal entries and faults, sizes and durations.
VARYING = re.compile(r"\d{4}\\-\d\d\\-\d\dT[\d:.\\]+Z|(?<=\\#)\d+|(?<=fault\\-)\d+|\d+(?:\\\.\d+)?(?=\\ (?:B|s|bytes)\b)")


def pattern(line):
    """A regular expression for a line: times, sizes and numbers of entries are any, an ellipsis is any text."""
    text = re.escape(re.sub(r"\s+", " ", line.strip()))
    return VARYING.sub(lambda match: r"[0-9T:.\-]+Z" if match.group().endswith("Z") else r"[0-9.]+", text.replace("…", ".*"))


def agrees(expected, actual):
    """Whether the lines are the expected ones, of which `…` stands for any number."""
    text = "".join("(?:.*\n)*" if line.strip() in ("…", "...") else pattern(line) + "\n" for line in expected if line.strip())
    lines = "".join(re.sub(r"\s+", " ", line.strip()) + "\n" for line in actual if line.strip())
    return re.fullmatch(text, lines) is not None


class Console:
    """Runs the commands of one document in a directory of its own, with a server on a port that the system chooses."""

    def __init__(self, directory):
        self.directory = directory
        self.processes = []
        self.ports = {}
        self.environment = dict(os.environ, PATH=f"{directory}:{DEBUG}:{os.environ['PATH']}", HOME=str(directory), LARDER_FIXTURES=str(ROOT / "Fixtures"))

    def start(self, command):
        """Starts a command that ends with `&`; the port that it names is replaced by a free one."""
        named = re.search(r"--port (\d+)", command)
        port = named.group(1) if named else "8080"
        text = re.sub(r"--port \d+", "", command.rstrip("& ")) + " --port 0"
        process = subprocess.Popen(
            ["bash", "-c", "exec " + self.adapted(text)],
            cwd=self.directory, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        self.processes.append(process)
        output = []
        for line in process.stdout:
            output.append(line.rstrip("\n"))
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                self.ports[port] = found.group(1)
                if port == "8080":
                    self.environment["LARDER_SERVER"] = f"http://127.0.0.1:{found.group(1)}"
                break
        return [self.named(line) for line in output]

    def adapted(self, command):
        for port, actual in self.ports.items():
            command = command.replace(f":{port}", f":{actual}")
        return command

    def named(self, output):
        """The output with the ports that the document names."""
        for port, actual in self.ports.items():
            output = output.replace(f":{actual}", f":{port}")
        return output

    def run(self, command):
        # Variables in lower case last until the end of the document, as in a reader's shell.
        names = "$(compgen -v | grep -E '^[a-z]+$')"
        script = f"[ -f .variables ] && . ./.variables\n{self.adapted(command)}\n[ -n \"{names}\" ] && declare -p {names} > .variables; true"
        result = subprocess.run(
            ["bash", "-c", script], cwd=self.directory, env=self.environment, capture_output=True, text=True, timeout=120
        )
        return self.named(result.stdout + result.stderr).split("\n")

    def build(self, name, code):
        """Compiles a main.swift with the objects of the debug build, which takes a second where a package of its own takes minutes."""
        source = self.directory / "main.swift"
        source.write_text(self.adapted(code), encoding="utf-8")
        # As the tests are linked: a directory that was built before has objects of deleted files.
        wanted = {f"{module}.build" for module in modules.closure("Larder") | {"Larder"}}
        listed = (DEBUG / "larderPackageTests.product" / "Objects.LinkFileList").read_text(encoding="utf-8").split("\n")
        objects = [path.strip("'") for path in listed if path.strip("'").endswith(".swift.o") and wanted & set(pathlib.Path(path).parts)]
        command = ["swiftc", "-swift-version", "6", "-I", str(DEBUG / "Modules"), "-I", str(ROOT / "Shared" / "CSQLite"), str(source), *objects]
        result = subprocess.run([*command, "-lsqlite3", "-o", str(self.directory / name)], capture_output=True, text=True)
        return [line for line in (result.stdout + result.stderr).split("\n") if "error: " in line] if result.returncode else []

    def describe(self, code):
        """Loads a Package.swift in a directory beside this repository, with all of its dependencies."""
        package = self.directory / "package"
        (package / "Sources" / "first").mkdir(parents=True)
        (package / "Sources" / "first" / "main.swift").write_text("print(1)\n")
        (package / "Package.swift").write_text(code, encoding="utf-8")
        (self.directory / "larder").symlink_to(ROOT)
        command = ["swift", "package", "--package-path", str(package), "show-dependencies"]
        result = subprocess.run(command, capture_output=True, text=True)
        return [line for line in result.stderr.split("\n") if "error: " in line] if result.returncode else []

    def stop(self):
        for process in self.processes:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def check_commands():
    if not (DEBUG / "larder-server").exists():
        yield "commands: there is no debug build; run Scripts/build.sh --build-tests first"
        return
    if not shutil.which("curl"):
        print("docs-check: the commands of the documents are left out: curl is missing")
        return
    for name in documents():
        text = read(name)
        blocks = list(CONSOLE.finditer(text))
        if not blocks:
            continue
        with tempfile.TemporaryDirectory() as directory:
            console = Console(pathlib.Path(directory))
            try:
                for match in sorted(blocks + list(MAIN.finditer(text)) + list(MANIFEST.finditer(text)) + list(FILE.finditer(text)), key=lambda each: each.start()):
                    line = text.count("\n", 0, match.start(1)) + 1
                    if match.re is MANIFEST:
                        for error in console.describe(match.group("code")):
                            yield f"{name}: the manifest at line {line}: {error}"
                        continue
                    if match.re is MAIN:
                        for error in console.build(match.group("name"), match.group("code")):
                            yield f"{name}: the program at line {line}: {error}"
                        continue
                    if match.re is FILE:
                        (console.directory / match.group("name")).write_text(match.group("code"), encoding="utf-8")
                        continue
                    for command, expected in steps(match.group(1)):
                        command = command.removeprefix("swift run ")
                        if "-m pytest" in command and not importlib.util.find_spec("pytest"):
                            print(f"docs-check: {name}: the suite of line {line} is left out: pytest is missing")
                            continue
                        if re.match(r"(git clone|cd|make|pip|npm|sudo|swift) ", command):
                            continue
                        if command.rstrip().endswith("&"):
                            actual = console.start(command)
                            expected = expected[: len(actual)]
                        else:
                            actual = console.run(command)
                        if not agrees(expected, actual):
                            yield f"{name}: the block at line {line}: {command.splitlines()[0]}\n    prints:\n" + "\n".join(
                                "    " + each for each in actual[:40]
                            )
            finally:
                console.stop()


CHECKS = {"sizes": check_sizes, "links": check_links, "facts": check_facts, "names": check_names, "swift": check_swift, "commands": check_commands}


def main():
    chosen = [each for each in sys.argv[1:] if not each.startswith("-")] or list(CHECKS)
    if unknown := set(chosen) - set(CHECKS):
        print(f"docs-check: no check {', '.join(unknown)}; there are {', '.join(CHECKS)}", file=sys.stderr)
        return 2
    count = 0
    for name in chosen:
        for finding in CHECKS[name]():
            print(finding)
            count += 1
    print(f"docs-check: {', '.join(chosen)}: {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
