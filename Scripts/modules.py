#!/usr/bin/env python3
"""Checks the modules: their dependencies, folders, imports, public types and the graph in ARCHITECTURE.md.

    python3 Scripts/modules.py            prints the findings
    python3 Scripts/modules.py --report   prints files, lines, public types and folder graph of each module
    python3 Scripts/modules.py --graph    writes the graph of Package.swift into ARCHITECTURE.md
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The modules that each module may use; it may also use what these may use.
MODULES = {
    "LarderTime": "",
    "LarderCoding": "",
    "LarderHTTP": "LarderTime LarderCoding",
    "LarderHTTPWire": "LarderHTTP",
    "LarderSQLite": "LarderTime",
    "LarderTLS": "LarderTime",
    "LarderModels": "",
    "LarderArguments": "LarderCoding",
    "LarderEngine": "LarderHTTPWire LarderTLS LarderTime",
    # The API is written in terms of the engine's requests and replies; it opens no socket.
    "LarderBackend": "LarderEngine LarderHTTP LarderSQLite LarderCoding LarderTime",
    "LarderServer": "LarderEngine LarderBackend LarderTLS",
    "larder-server": "LarderServer LarderArguments",
    "LarderEvents": "LarderTime",
    "LarderMemory": "LarderTime",
    "LarderStorage": "LarderSQLite LarderTLS LarderCoding LarderTime",
    "LarderTransport": "LarderHTTPWire LarderTLS LarderTime LarderEvents",
    "LarderHTTPCache": "LarderTransport LarderMemory LarderStorage",
    "LarderResources": "LarderMemory LarderStorage LarderEvents",
    "LarderImages": "LarderHTTPCache LarderMemory LarderStorage LarderTransport",
    "LarderDevice": "LarderEvents LarderTransport",
    # Its records are written as JSON.
    "LarderTelemetry": "LarderEvents LarderCoding",
    "Larder": "LarderHTTPCache LarderResources LarderImages LarderDevice LarderTelemetry",
    "LarderDemo": "Larder LarderModels",
    "LarderTesting": "Larder",
    "LarderCommand": "LarderDemo LarderArguments LarderServer",
}
# What `import Larder` brings, and the most public types in it, nested ones included.
UMBRELLA = (
    "Larder LarderEvents LarderMemory LarderStorage LarderTransport LarderHTTPCache LarderResources LarderImages LarderDevice "
    "LarderTelemetry LarderHTTP LarderTLS LarderTime"
).split()
UMBRELLA_MAXIMUM = 200
PRODUCT_MAXIMUM = 60
LAYERS = ("Shared", "Server", "ClientSDK")
ROW = re.compile(r"^\|[^|]*\| `(Larder\w*|larder-server)` \|[^|]*\|$", re.MULTILINE)
GRAPH = re.compile(r"(<!-- modules:begin -->\n).*?(<!-- modules:end -->)", re.DOTALL)

DECLARATION = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*(?:(?:public|package|internal|final|indirect|nonisolated|open)\s+)*"
    r"(struct|class|enum|protocol|actor|typealias|func)\s+`?(\w+)",
    re.MULTILINE,
)
PUBLIC = re.compile(
    r"^(?:@\w+(?:\([^)]*\))?\s+)*public (?:final |indirect |nonisolated )*(?:struct|class|enum|protocol|actor|typealias) (\w+)",
    re.MULTILINE,
)
NESTED_PUBLIC = re.compile(
    r"^\s+(?:@\w+(?:\([^)]*\))?\s+)*public (?:final |indirect |nonisolated )*(?:struct|class|enum|protocol|actor|typealias) (\w+)",
    re.MULTILINE,
)
NESTED = re.compile(
    r"^\s+(?:(?:public|package|private|fileprivate|final|indirect)\s+)*(?:struct|class|enum|protocol|actor|typealias)\s+(\w+)",
    re.MULTILINE,
)
IMPORT = re.compile(r"^(?:@\w+ )?(?:public |package |internal )?import (?:\w+ )?(Larder\w*)$", re.MULTILINE)


def code(text):
    """The text without comments and string literals."""
    text = re.sub(r'"""[\s\S]*?"""', '""', text)
    text = re.sub(r"(?<!:)//[^\n]*", "", text)
    return re.sub(r'"(?:[^"\\\n]|\\[^(])*"', '""', text)


def closure(name):
    found, left = set(), MODULES[name].split()
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += MODULES[each].split()
    return found


def cycles(graph):
    """The strongly connected components of more than one node (Tarjan)."""
    index, low, stack, result = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in graph.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            component = []
            while not component or component[-1] != node:
                component.append(stack.pop())
            if len(component) > 1:
                result.append(sorted(component))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return result


class Module:
    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.files = {path: path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.swift"))}

    def lines(self):
        return sum(text.count("\n") for text in self.files.values())

    def public_types(self):
        return sorted(name for text in self.files.values() for name in PUBLIC.findall(text))

    def nested_public_types(self):
        return sum(len(NESTED_PUBLIC.findall(text)) for text in self.files.values())

    def public_members(self):
        return sum(len(re.findall(r"^\s+(?:\S+ )*?public ", text, re.MULTILINE)) for text in self.files.values())

    def imports(self):
        return {(path, name) for path, text in self.files.items() for name in IMPORT.findall(text)}

    def folder_graph(self):
        """Which folder uses which, by the names of declarations at the top level of files."""

        def folder(path):
            parts = path.relative_to(self.folder).parts
            return parts[0] if len(parts) > 1 else "."

        texts = {path: code(text) for path, text in self.files.items()}
        homes = collections.defaultdict(set)
        for path, text in texts.items():
            for match in DECLARATION.finditer(text):
                homes[match.group(2)].add(path)
        graph = collections.defaultdict(lambda: collections.defaultdict(set))
        for path, text in texts.items():
            own = set(NESTED.findall(text))
            for word in set(re.findall(r"(?<![.\w])([A-Z]\w+)", text)):
                home = homes.get(word)
                if not home or len(home) > 1 or path in home or word in own:
                    continue
                other = folder(next(iter(home)))
                if other != folder(path):
                    graph[folder(path)][other].add(f"{path.name}: {word}")
        return graph


def manifest():
    text = subprocess.run(["swift", "package", "dump-package"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    package = json.loads(text)
    targets = {}
    for target in package["targets"]:
        dependencies = []
        for each in target["dependencies"]:
            kind = each.get("byName") or each.get("target") or each.get("product")
            dependencies.append(kind[0])
        targets[target["name"]] = (target["type"], target.get("path") or "", dependencies)
    products = {product["name"]: product["targets"] for product in package["products"]}
    return targets, products


def graph_text(targets):
    lines = ["```mermaid", "graph TD"]
    for name in MODULES:
        if name not in targets:
            continue
        direct = [each for each in targets[name][2] if each in MODULES]
        # An arrow that follows from others is left out.
        implied = set().union(*(closure(each) for each in direct)) if direct else set()
        lines += [f"  {name} --> {each}" for each in sorted(direct) if each not in implied]
    return "\n".join(lines + ["```", ""])


def check_tests(targets):
    """A test target that imports an undeclared module is not built in order, and not rebuilt when the module changes."""
    findings = []
    for name, (_, path, dependencies) in targets.items():
        if not path.startswith("Tests/"):
            continue
        for path, each in sorted(Module(name, ROOT / path).imports()):
            if each not in dependencies:
                findings.append(f"{path.relative_to(ROOT)}: imports {each}, which Package.swift does not declare for {name}")
    return findings


def check_table(document):
    """Every module has one row in the table of ARCHITECTURE.md; the graph below it has the arrows."""
    rows = ROW.findall(document)
    return [f"ARCHITECTURE.md: the table has no row, or several, for {name}" for name in MODULES if rows.count(name) != 1] + [
        f"ARCHITECTURE.md: the table has a row for {name}, which is no module" for name in rows if name not in MODULES
    ]


def check():
    targets, products = manifest()
    findings = []
    modules = {}
    for layer in LAYERS:
        for folder in sorted((ROOT / layer).iterdir()):
            if folder.is_dir() and any(folder.rglob("*.swift")):
                modules[folder.name] = Module(folder.name, folder)
    for name in sorted(set(modules) ^ set(MODULES)):
        findings.append(f"{name}: a module has a folder of its name and an entry in Scripts/modules.py; one of them is missing")
    for name, module in modules.items():
        if name not in MODULES:
            continue
        allowed = closure(name)
        path = targets[name][1] if name in targets else None
        if path != str(module.folder.relative_to(ROOT)):
            findings.append(f"{name}: its folder is {module.folder.relative_to(ROOT)}, and Package.swift says {path}")
            continue
        declared = set(targets[name][2])
        for each in sorted(declared & set(MODULES) - allowed):
            findings.append(f"{name}: Package.swift lets it use {each}, and the table in Scripts/modules.py does not")
        for path, each in sorted(module.imports()):
            if each not in declared and each != name:
                findings.append(f"{path.relative_to(ROOT)}: imports {each}, which Package.swift does not declare for {name}")
        uses = module.folder_graph()
        for cycle in cycles(uses):
            findings.append(f"{name}: the folders {', '.join(cycle)} need each other")
            for one in cycle:
                for other in sorted(set(uses[one]) & set(cycle)):
                    findings.append(f"    {one} -> {other}: {', '.join(sorted(uses[one][other])[:3])}")
    findings += check_tests(targets)
    members = [modules[name] for name in UMBRELLA if name in modules]
    count = sum(len(module.public_types()) + module.nested_public_types() for module in members)
    if count > UMBRELLA_MAXIMUM:
        findings.append(f"import Larder brings {count} public types, nested ones included; at most {UMBRELLA_MAXIMUM}")
    for product, members in products.items():
        own = sum(len(modules[name].public_types()) for name in members if name in modules)
        if own > PRODUCT_MAXIMUM:
            findings.append(f"the product {product} has {own} public types at the top level; at most {PRODUCT_MAXIMUM}")
    document = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    findings += check_table(document)
    found = GRAPH.search(document)
    if not found or graph_text(targets) not in found.group(0):
        findings.append("ARCHITECTURE.md: its graph is not that of Package.swift; run python3 Scripts/modules.py --graph")
    return findings, modules, targets


def main():
    findings, modules, targets = check()
    if "--graph" in sys.argv:
        path = ROOT / "ARCHITECTURE.md"
        text = path.read_text(encoding="utf-8")
        path.write_text(GRAPH.sub(lambda match: match.group(1) + graph_text(targets) + match.group(2), text), encoding="utf-8")
        return 0
    if "--report" in sys.argv:
        for name, module in modules.items():
            uses = module.folder_graph()
            print(
                f"{name:20} {len(module.files):4} files {module.lines():6} lines {len(module.public_types()):4} public types "
                f"{module.public_members():4} public members"
            )
            for one in sorted(uses):
                print(f"    {one} -> {', '.join(sorted(uses[one]))}")
        umbrella = [modules[name] for name in UMBRELLA if name in modules]
        top, nested = sum(len(each.public_types()) for each in umbrella), sum(each.nested_public_types() for each in umbrella)
        print(f"import Larder: {top} public types, {top + nested} with nested ones")
    for line in findings:
        print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
