import TestSupport
import Testing

@testable import LarderHTTP

@Suite("Link fields", .oneMinute)
struct WebLinkTests {
    private func lines(_ values: String...) -> [String] {
        WebLink.parse(values).map { link in
            let parameters = link.parameters.map { " \($0.name)=\($0.value)" }.joined()
            return "\(link.target) \(link.relations)\(parameters)"
        }
    }

    @Test func `targets, relation types and parameters are parsed (RFC 8288 §3.5)`() {
        #expect(
            lines("<http://example.com/TheBook/chapter2>; rel=\"previous\"; title=\"previous chapter\"")
                == ["http://example.com/TheBook/chapter2 [\"previous\"] title=previous chapter"]
        )
        #expect(lines("</>; rel=\"http://example.net/foo\"") == ["/ [\"http://example.net/foo\"]"])
        #expect(
            lines("<http://example.org/>; rel=\"start http://example.net/relation/other\"")
                == ["http://example.org/ [\"start\", \"http://example.net/relation/other\"]"]
        )
        #expect(
            lines("<https://example.org/>; rel=\"start\", <https://example.org/index>; rel=\"index\"")
                == ["https://example.org/ [\"start\"]", "https://example.org/index [\"index\"]"]
        )
        #expect(
            lines("<?page=2>; rel=next", "<?page=9>; REL=\"Last\"") == ["?page=2 [\"next\"]", "?page=9 [\"last\"]"]
        )
    }

    @Test func `separators within targets and quoted strings separate nothing`() {
        #expect(lines("</a,b;c>; title=\"x, y; \\\"z\\\"\"; rel=next") == ["/a,b;c [\"next\"] title=x, y; \"z\""])
        #expect(lines(" , </a>;rel=next ,, </b> ; rel=last,") == ["/a [\"next\"]", "/b [\"last\"]"])
    }

    @Test func `only the first rel counts, and links of another context are left out`() {
        #expect(lines("</a>; rel=next; rel=last") == ["/a [\"next\"]"])
        #expect(lines("</a>; rel=next; anchor=\"/other\", </b>; rel=next") == ["/b [\"next\"]"])
        #expect(WebLink.parse(["</a>; rel=\"Next\""]).first?.relates(as: "NEXT") == true)
    }

    @Test func `a syntax error ends its field and keeps the links before it`() {
        #expect(lines("</a>; rel=next, nonsense, </b>; rel=last", "</c>; rel=up") == ["/a [\"next\"]", "/c [\"up\"]"])
        #expect(lines("</a", "<", "", "\"", "<>; rel=next") == [" [\"next\"]"])
        #expect(lines("</a>; rel=\"next") == ["/a [\"next\"]"])
        #expect(lines("</a>;;; rel", "</b>; =; rel=next;") == ["/a []", "/b [\"next\"]"])
    }
}
