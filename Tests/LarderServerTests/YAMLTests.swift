import LarderCoding
import Testing

@testable import LarderServer

@Suite("YAML")
struct YAMLTests {
    @Test(arguments: [
        ("", "null"), ("a: 1\nb: [x, 'y z', \"q\\n\"]  # end\n", #"{"a":1,"b":["x","y z","q\n"]}"#),
        ("%YAML 1.2\n---\n# c\na:\n- 1\n-\n  b: 2\n  c:\n- - 3\n  - 4.5\n", #"{"a":[1,{"b":2,"c":null},[3,4.5]]}"#),
        (
            "a: {b: , 'c': [1, {d: e f}],\n  g: true,}\nh: ~\n",
            #"{"a":{"b":null,"c":[1,{"d":"e f"}],"g":true},"h":null}"#
        ),
        ("a: one\n  two\n\n  three # x\nb: x: y", #"{"a":"one two\nthree","b":"x: y"}"#),
        (
            "a: |\n  one\n   two\n\n  three\n\nb: >-\n  one\n  two\n\n  three\nc: |+\n  x\n\n",
            #"{"a":"one\n two\n\nthree\n","b":"one two\nthree","c":"x\n\n"}"#
        ),
        ("a: >\n\n  one\n    two\n  three\n  four\n", #"{"a":"\none\n  two\nthree four\n"}"#),
        (
            "\"a b\": 'it''s\n  long'\n200: x#y\n'~': -0.5e3\nc: 1.2.3\nd: 2026-01-01\n",
            #"{"a b":"it's long","200":"x#y","~":-5e2,"c":"1.2.3","d":"2026-01-01"}"#
        ),
        (
            "- a: http://x:1/y?z#w\n  b: \"\\u00e9 \\\\\"\n- |\n  t\n- - x\n",
            #"[{"a":"http://x:1/y?z#w","b":"é \\"},"t\n",["x"]]"#
        ),
        ("a: \"one \\\n  \\ two\\x41\\\\\"\n", #"{"a":"one  twoA\\"}"#),
        ("a:\n    b: 1\n    # c\n  # d\n\n    c:\n      \"x\"\n", #"{"a":{"b":1,"c":"x"}}"#),
    ])
    func `documents are read`(text: String, expected: String) throws {
        let value = try YAMLReader.read(Array(text.utf8))
        #expect(
            try value == JSONParser.parse(Array(expected.utf8)),
            "\(String(decoding: value.encoded, as: UTF8.self))"
        )
    }

    @Test(arguments: [
        ("a: &x 1", 1, "anchors"), ("a: 1\nb: *x", 2, "aliases"), ("a: !!str 1", 1, "tags"),
        ("? a\n: b", 1, "complex keys"),
        ("a:\n\tb: 1", 2, "tabs"), ("a: 1\na: 2", 2, "second time"), ("a: 1\n  b: 2", 2, "further"),
        ("a: [1, 2", 1, "ended"), ("a: \"x\nb: 1", 2, "ended"), ("a: {b}", 1, "name: value"),
        ("a: [1 2] x", 1, "behind"),
        ("a: \"\\q\"", 1, "escape"), ("a: |2\n  x", 1, "supported"), ("a: 1\n---\nb: 2", 2, "name: value"),
        ("a:\n  b: 1\n c: 2", 3, "further"), ("- a\nb", 2, "part"),
    ])
    func `what is not supported is a sentence with the line`(text: String, line: Int, expected: String) {
        let error = #expect(throws: YAMLReader.Failure.self) { _ = try YAMLReader.read(Array(text.utf8)) }
        #expect(error?.line == line && error?.reason.contains(expected) ?? false, "\(error.map { "\($0)" } ?? "")")
    }

    @Test func `nesting is bounded`() {
        for text in [String(repeating: "[", count: 100_000), String(repeating: "- ", count: 100_000)] {
            #expect(throws: YAMLReader.Failure.self) { _ = try YAMLReader.read(Array(text.utf8)) }
        }
    }
}
