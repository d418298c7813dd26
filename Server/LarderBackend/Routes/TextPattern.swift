/// A regular expression whose matching never takes exponential time: it follows the positions that a part of the expression reaches, each
/// once.
///
/// Syntax: characters, `.`, `[a-z]`, `[^a-z]`, `\d`, `\w`, `\s` and their complements, `^`, `$`, groups, `|`, `*`, `+`, `?`, `{m}`, `{m,}`
/// and `{m,n}`. A match may begin anywhere unless the expression says `^`. There are no captures, back-references or lookarounds.
package struct TextPattern: Sendable {
    /// Why a text is not an expression.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private typealias Test = @Sendable (Unicode.Scalar) -> Bool

    private indirect enum Node: Sendable {
        case scalar(Test)
        case start, end
        case sequence([Node])
        case choice([Node])
        case repeated(Node, least: Int, most: Int)

        /// The number of scalars and ends that are tried, with counted repetitions written out.
        var size: Int {
            switch self {
            case .scalar, .start, .end: 1
            case .sequence(let nodes), .choice(let nodes): nodes.reduce(0) { $0 + $1.size }
            case .repeated(let node, let least, let most): (most == .max ? least + 1 : most) * node.size
            }
        }

        /// The positions behind the matches that begin at the given positions, each once.
        func ends(of starts: [Int], in text: [Unicode.Scalar]) -> [Int] {
            switch self {
            case .scalar(let fits): return starts.filter { $0 < text.count && fits(text[$0]) }.map { $0 + 1 }
            case .start: return starts.filter { $0 == 0 }
            case .end: return starts.filter { $0 == text.count }
            case .sequence(let nodes): return nodes.reduce(starts) { $1.ends(of: $0, in: text) }
            case .choice(let nodes): return Array(Set(nodes.flatMap { $0.ends(of: starts, in: text) }))
            case .repeated(let node, let least, let most):
                var last = (0..<least).reduce(starts) { last, _ in node.ends(of: last, in: text) }
                var (all, count) = (Set(last), least)
                while count < most, !last.isEmpty {
                    last = node.ends(of: last, in: text).filter { all.insert($0).inserted }
                    count += 1
                }
                return Array(all)
            }
        }
    }

    /// Only so many scalars of a text are searched.
    package static let textMaximum = 16_384
    private static let lengthMaximum = 512
    private static let sizeMaximum = 2_000

    private let root: Node

    package init(_ text: String) throws(Failure) {
        guard text.utf8.count <= Self.lengthMaximum else {
            throw Failure(description: "has more than \(Self.lengthMaximum) bytes")
        }
        var parser = Parser(rest: text.unicodeScalars[...])
        root = try parser.choice()
        guard parser.rest.isEmpty else { throw Failure(description: "has a ')' without a '('") }
    }

    /// Whether a part of the text matches.
    package func matches(_ text: String) -> Bool {
        let scalars = Array(text.unicodeScalars.prefix(Self.textMaximum))
        return !root.ends(of: Array(0...scalars.count), in: scalars).isEmpty
    }

    private struct Parser {
        var rest: Substring.UnicodeScalarView

        mutating func choice() throws(Failure) -> Node {
            var nodes = [try sequence()]
            while rest.first == "|" {
                rest.removeFirst()
                nodes.append(try sequence())
            }
            return nodes.count == 1 ? nodes[0] : .choice(nodes)
        }

        private mutating func sequence() throws(Failure) -> Node {
            var nodes: [Node] = []
            while let next = rest.first, next != "|", next != ")" { nodes.append(try repeated(try atom())) }
            let node = Node.sequence(nodes)
            guard node.size <= sizeMaximum else { throw Failure(description: "is too large") }
            return node
        }

        private mutating func atom() throws(Failure) -> Node {
            switch rest.removeFirst() {
            case ".": return .scalar { $0 != "\n" }
            case "^": return .start
            case "$": return .end
            case "[": return .scalar(try set())
            case "\\": return .scalar(try escape().test)
            case "(":
                if rest.starts(with: "?:".unicodeScalars) { rest.removeFirst(2) }
                guard rest.first != "?" else { throw Failure(description: "uses '(?', which is not supported") }
                let node = try choice()
                guard rest.popFirst() == ")" else { throw Failure(description: "has a '(' without a ')'") }
                return node
            case let scalar where "*+?{".unicodeScalars.contains(scalar):
                throw Failure(description: "repeats nothing with '\(scalar)'")
            case let scalar: return .scalar { $0 == scalar }
            }
        }

        private mutating func repeated(_ node: Node) throws(Failure) -> Node {
            guard let sign = rest.first, "*+?{".unicodeScalars.contains(sign) else { return node }
            rest.removeFirst()
            switch sign {
            case "*": return .repeated(node, least: 0, most: .max)
            case "+": return .repeated(node, least: 1, most: .max)
            case "?": return .repeated(node, least: 0, most: 1)
            default: break
            }
            let digits = String(rest.prefix { $0 != "}" })
            rest.removeFirst(min(rest.count, digits.unicodeScalars.count + 1))
            let bounds = digits.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
            guard let least = bounds[0], bounds.count <= 2,
                let most = bounds.count == 1 ? least : digits.hasSuffix(",") ? .max : bounds[1], 0 <= least,
                least <= most, most == .max || most <= 1_000, least <= 1_000
            else { throw Failure(description: "has a wrong repetition '{\(digits)}'; write '{2}' or '{2,5}'") }
            return .repeated(node, least: least, most: most)
        }

        private static let classes: [Unicode.Scalar: Test] = [
            "d": { isDigit($0) }, "D": { !isDigit($0) }, "w": { isWord($0) }, "W": { !isWord($0) },
            "s": { isSpace($0) }, "S": { !isSpace($0) },
        ]

        private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { ("0"..."9").contains(scalar) }

        private static func isWord(_ scalar: Unicode.Scalar) -> Bool {
            scalar.isASCII && (scalar.properties.isAlphabetic || isDigit(scalar) || scalar == "_")
        }

        private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
            scalar == " " || ("\t"..."\r").contains(scalar)
        }

        /// What follows a backslash: a class of characters, or one character.
        private mutating func escape() throws(Failure) -> (test: Test, scalar: Unicode.Scalar?) {
            guard let name = rest.popFirst() else { throw Failure(description: "ends with a '\\'") }
            if let test = Self.classes[name] { return (test, nil) }
            let scalar: Unicode.Scalar = name == "n" ? "\n" : name == "t" ? "\t" : name
            guard scalar != name || name == "_" || !Self.isWord(name) else {
                throw Failure(description: "uses '\\\(name)', which is not supported")
            }
            return ({ $0 == scalar }, scalar)
        }

        private mutating func set() throws(Failure) -> Test {
            let isNegated = rest.first == "^"
            if isNegated { rest.removeFirst() }
            var tests: [Test] = []
            while let next = rest.popFirst() {
                // At the beginning of a set it is one of its characters.
                if next == "]", !tests.isEmpty { return { [tests] in Self.isAny($0, of: tests) != isNegated } }
                var (test, scalar): (Test, Unicode.Scalar?) = ({ $0 == next }, next)
                if next == "\\" { (test, scalar) = try escape() }
                if let low = scalar, rest.first == "-", let high = rest.dropFirst().first, high != "]" {
                    rest.removeFirst(2)
                    guard low <= high else { throw Failure(description: "has a range that ends before it begins") }
                    test = { (low...high).contains($0) }
                }
                tests.append(test)
            }
            throw Failure(description: "has a '[' without a ']'")
        }

        private static func isAny(_ scalar: Unicode.Scalar, of tests: [Test]) -> Bool {
            tests.contains { $0(scalar) }
        }
    }
}
