import LarderCoding
import LarderTime
import Testing

@testable import Larder

@Suite("JSON merge patches")
struct MergePatchTests {
    /// The examples of RFC 7396, appendix A: document, patch, result.
    private static let examples = [
        (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
        (#"{"a":"b"}"#, #"{"a":null}"#, "{}"), (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
        (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#), (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
        (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
        (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#), (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
        (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#), (#"{"a":"foo"}"#, "null", "null"),
        (#"{"a":"foo"}"#, #""bar""#, #""bar""#), (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
        ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#), ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
    ]

    @Test func `a patch has the effect of the RFC's examples`() throws {
        for (document, patch, result) in Self.examples {
            let made = MergePatch.apply(try MergePatch.parse(patch), to: try MergePatch.parse(document))
            #expect(MergePatch.text(made) == result, "\(document) \(patch)")
        }
    }

    @Test func `a composed patch has the effect of both, and a difference leads from one document to the other`() throws
    {
        var generator = SeededGenerator(seed: 7)
        var count = 0
        for _ in 0..<500 {
            let (first, second, third) = (object(&generator), object(&generator), object(&generator))
            if let composed = MergePatch.compose(second, third) {
                count += 1
                let both = MergePatch.apply(third, to: MergePatch.apply(second, to: first))
                #expect(sorted(MergePatch.apply(composed, to: first)) == sorted(both), "\(first) \(second) \(third)")
            }
            let (old, new) = (withoutNull(first), withoutNull(second))
            let patch = MergePatch.difference(from: old, to: new)
            #expect(sorted(patch.map { MergePatch.apply($0, to: old) } ?? old) == sorted(new), "\(old) \(new)")
        }
        #expect(count > 50)
    }

    private func object(_ generator: inout SeededGenerator, depth: Int = 2) -> JSONValue {
        var object = JSONObject()
        for name in ["a", "b", "c"] {
            switch generator.next() % 5 {
            case 0: break
            case 1: object[name] = .null
            case 2: object[name] = .integer(Int64(generator.next() % 3))
            case 3: object[name] = .array([.string("x")])
            default: object[name] = depth == 0 ? .bool(true) : self.object(&generator, depth: depth - 1)
            }
        }
        return .object(object)
    }

    private func withoutNull(_ value: JSONValue) -> JSONValue {
        guard let object = value.object else { return value }
        return .object(
            JSONObject(
                object.members.filter { $0.value != .null }.map { .init(name: $0.name, value: withoutNull($0.value)) }
            )
        )
    }

    private func sorted(_ value: JSONValue) -> JSONValue {
        guard let object = value.object else { return value }
        let members = object.members.sorted { $0.name < $1.name }
        return .object(JSONObject(members.map { .init(name: $0.name, value: sorted($0.value)) }))
    }
}
