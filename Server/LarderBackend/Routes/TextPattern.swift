/// A regular expression whose matching takes time proportional to the text, whatever the expression (Thompson 1968).
///
/// Syntax: characters, `.`, `[a-z]`, `[^a-z]`, `\d`, `\w`, `\s` and their complements, `^`, `$`, groups, `|`, `*`, `+`, `?`, `{m}`, `{m,}`
/// and `{m,n}`. A match may begin anywhere unless the expression says `^`. There are no captures, back-references or lookarounds.
package struct TextPattern: Sendable {
    /// Why a text is not an expression.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// Whether a character fits.
    private typealias Test = @Sendable (Unicode.Scalar) -> Bool

    /// One step of the automaton. Distances are relative, so that programs can be joined and repeated.
    private enum Step: Sendable {
        case scalar(Test)
        case split(Int, Int)
        case jump(Int)
        case start, end
    }

    /// Only so many scalars of a text are searched.
    package static let textMaximum = 16_384
    private static let lengthMaximum = 512
    private static let stepsMaximum = 2_000

    private var steps: [Step] = []

    package init(_ text: String) throws(Failure) {
        guard text.utf8.count <= Self.lengthMaximum else {
            throw Failure(description: "has more than \(Self.lengthMaximum) bytes")
        }
        var parser = Parser(rest: text.unicodeScalars[...])
        steps = try parser.alternatives()
        guard parser.rest.isEmpty else { throw Failure(description: "has a ')' without a '('") }
    }

    /// Whether a part of the text matches. Cost: O(length of the text × length of the expression).
    package func matches(_ text: String) -> Bool {
        let scalars = Array(text.unicodeScalars.prefix(Self.textMaximum))
        var marks = [Int](repeating: -1, count: steps.count)
        var current: [Int] = []
        for position in 0...scalars.count {
            var next: [Int] = []
            for place in [0] + current where reach(place, position, scalars.count, &marks, &next) { return true }
            guard position < scalars.count else { return false }
            current = next.compactMap { place in
                guard case .scalar(let fits) = steps[place], fits(scalars[position]) else { return nil }
                return place + 1
            }
        }
        return false
    }

    /// Follows the steps that need no scalar; true at the end of the program.
    private func reach(_ first: Int, _ position: Int, _ count: Int, _ marks: inout [Int], _ reached: inout [Int])
        -> Bool
    {
        var stack = [first]
        while let place = stack.popLast() {
            guard place < steps.count else { return true }
            guard marks[place] != position else { continue }
            marks[place] = position
            switch steps[place] {
            case .scalar: reached.append(place)
            case .split(let one, let other): stack += [place + one, place + other]
            case .jump(let distance): stack.append(place + distance)
            case .start: if position == 0 { stack.append(place + 1) }
            case .end: if position == count { stack.append(place + 1) }
            }
        }
        return false
    }

    private struct Parser {
        var rest: Substring.UnicodeScalarView

        mutating func alternatives() throws(Failure) -> [Step] {
            var steps = try sequence()
            while rest.first == "|" {
                rest.removeFirst()
                let other = try sequence()
                steps = [.split(1, steps.count + 2)] + steps + [.jump(other.count + 1)] + other
            }
            return steps
        }

        private mutating func sequence() throws(Failure) -> [Step] {
            var steps: [Step] = []
            while let next = rest.first, next != "|", next != ")" {
                steps += try repeated(try atom())
                guard steps.count <= stepsMaximum else { throw Failure(description: "is too large") }
            }
            return steps
        }

        private mutating func atom() throws(Failure) -> [Step] {
            switch rest.removeFirst() {
            case ".": return [.scalar { $0 != "\n" }]
            case "^": return [.start]
            case "$": return [.end]
            case "[": return [.scalar(try set())]
            case "\\": return [.scalar(try escape().test)]
            case "(":
                if rest.starts(with: "?:".unicodeScalars) { rest.removeFirst(2) }
                guard rest.first != "?" else { throw Failure(description: "uses '(?', which is not supported") }
                let steps = try alternatives()
                guard rest.popFirst() == ")" else { throw Failure(description: "has a '(' without a ')'") }
                return steps
            case let scalar where "*+?{".unicodeScalars.contains(scalar):
                throw Failure(description: "repeats nothing with '\(scalar)'")
            case let scalar: return [.scalar { $0 == scalar }]
            }
        }

        private mutating func repeated(_ steps: [Step]) throws(Failure) -> [Step] {
            let count = steps.count
            let optional = [.split(1, count + 1)] + steps
            let any = [.split(1, count + 2)] + steps + [.jump(-count - 1)]
            switch rest.first {
            case "*": rest.removeFirst(); return any
            case "+": rest.removeFirst(); return steps + any
            case "?": rest.removeFirst(); return optional
            case "{": break
            default: return steps
            }
            let digits = String(rest.dropFirst().prefix { $0 != "}" })
            rest.removeFirst(min(rest.count, digits.unicodeScalars.count + 2))
            let bounds = digits.split(separator: ",", omittingEmptySubsequences: false).map { Int($0) }
            guard let least = bounds[0], (0...1_000).contains(least), bounds.count <= 2,
                bounds.count == 1 || bounds[1] != nil || digits.hasSuffix(",")
            else { throw Failure(description: "has a wrong repetition '{\(digits)}'; write '{2}' or '{2,5}'") }
            var most = least
            if bounds.count == 2 { most = bounds[1] ?? least }
            guard most >= least, most <= 1_000, most * (count + 1) <= stepsMaximum else {
                throw Failure(description: "has a wrong or too large repetition '{\(digits)}'")
            }
            let fixed = Array(repeatElement(steps, count: least).joined())
            if digits.hasSuffix(",") { return fixed + any }
            return fixed + repeatElement(optional, count: most - least).joined()
        }

        /// The sets that are named by a letter.
        private static let classes: [Unicode.Scalar: String] = [
            "d": "0-9]", "D": "^0-9]", "w": "A-Za-z0-9_]", "W": "^A-Za-z0-9_]", "s": " \t-\r]", "S": "^ \t-\r]",
        ]

        /// What follows a backslash: a class of characters, or one character.
        private mutating func escape() throws(Failure) -> (test: Test, scalar: Unicode.Scalar?) {
            guard let name = rest.popFirst() else { throw Failure(description: "ends with a '\\'") }
            if let text = Self.classes[name] {
                var parser = Parser(rest: text.unicodeScalars[...])
                return (try parser.set(), nil)
            }
            let scalar: Unicode.Scalar = name == "n" ? "\n" : name == "t" ? "\t" : name
            guard scalar != name || !name.isASCII || !name.properties.isAlphabetic && !("0"..."9").contains(name) else {
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
                if next == "]", !tests.isEmpty {
                    return { [tests] scalar in tests.contains { $0(scalar) } != isNegated }
                }
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
    }
}
