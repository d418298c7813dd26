/// A regular expression whose matching takes time proportional to the text, whatever the expression (Thompson 1968).
///
/// Syntax: characters, `.`, `[a-z]`, `[^a-z]`, `\d`, `\w`, `\s` and their complements, `^`, `$`, groups, `|`, `*`, `+`, `?`, `{m}`, `{m,}`
/// and `{m,n}`. A match may begin anywhere unless the expression says `^`. There are no captures, back-references or lookarounds.
package struct TextPattern: Sendable {
    /// Why a text is not an expression.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    private struct ScalarSet: Sendable {
        var ranges: [ClosedRange<UInt32>]
        var isNegated = false

        func contains(_ scalar: UInt32) -> Bool { ranges.contains { $0.contains(scalar) } != isNegated }
    }

    /// One step of the automaton. Distances are relative, so that programs can be joined and repeated.
    private enum Step: Sendable {
        case scalar(ScalarSet)
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
        var parser = Parser(text)
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
                guard case .scalar(let set) = steps[place], set.contains(scalars[position].value) else { return nil }
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

        init(_ text: String) { rest = text.unicodeScalars[...] }

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
            case ".": return [.scalar(ScalarSet(ranges: [10...10], isNegated: true))]
            case "^": return [.start]
            case "$": return [.end]
            case "[": return [.scalar(try set())]
            case "\\": return [.scalar(try escape())]
            case "(":
                if rest.starts(with: "?:".unicodeScalars) { rest.removeFirst(2) }
                guard rest.first != "?" else { throw Failure(description: "uses '(?', which is not supported") }
                let steps = try alternatives()
                guard rest.popFirst() == ")" else { throw Failure(description: "has a '(' without a ')'") }
                return steps
            case let scalar where "*+?{".unicodeScalars.contains(scalar):
                throw Failure(description: "repeats nothing with '\(scalar)'")
            case let scalar: return [.scalar(ScalarSet(ranges: [scalar.value...scalar.value]))]
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
            guard most >= least, most * (count + 1) <= stepsMaximum else {
                throw Failure(description: "has a wrong or too large repetition '{\(digits)}'")
            }
            let fixed = Array(repeatElement(steps, count: least).joined())
            if digits.hasSuffix(",") { return fixed + any }
            return fixed + repeatElement(optional, count: most - least).joined()
        }

        private mutating func escape() throws(Failure) -> ScalarSet {
            guard let scalar = rest.popFirst() else { throw Failure(description: "ends with a '\\'") }
            switch scalar {
            case "d", "D": return ScalarSet(ranges: [48...57], isNegated: scalar == "D")
            case "w", "W": return ScalarSet(ranges: [48...57, 65...90, 95...95, 97...122], isNegated: scalar == "W")
            case "s", "S": return ScalarSet(ranges: [9...13, 32...32], isNegated: scalar == "S")
            case "n": return ScalarSet(ranges: [10...10])
            case "t": return ScalarSet(ranges: [9...9])
            case _ where scalar.isASCII && scalar.properties.isAlphabetic || ("0"..."9").contains(scalar):
                throw Failure(description: "uses '\\\(scalar)', which is not supported")
            default: return ScalarSet(ranges: [scalar.value...scalar.value])
            }
        }

        private mutating func set() throws(Failure) -> ScalarSet {
            var set = ScalarSet(ranges: [])
            if rest.first == "^" {
                set.isNegated = true
                rest.removeFirst()
            }
            var isFirst = true
            while let scalar = rest.popFirst() {
                if scalar == "]", !isFirst { return set }
                isFirst = false
                var low = scalar.value
                if scalar == "\\" {
                    let escaped = try escape()
                    guard !escaped.isNegated, escaped.ranges.count == 1, escaped.ranges[0].count == 1 else {
                        guard !escaped.isNegated else { throw Failure(description: "has a complement in a set") }
                        set.ranges += escaped.ranges
                        continue
                    }
                    low = escaped.ranges[0].lowerBound
                }
                var high = low
                if rest.first == "-", let end = rest.dropFirst().first, end != "]" {
                    rest.removeFirst(2)
                    high = end.value
                }
                guard low <= high else { throw Failure(description: "has a range that ends before it begins") }
                set.ranges.append(low...high)
            }
            throw Failure(description: "has a '[' without a ']'")
        }
    }
}
