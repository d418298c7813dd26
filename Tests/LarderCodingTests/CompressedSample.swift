import LarderCoding
import Testing

/// A compressed stream that zlib wrote, and its content.
struct CompressedSample: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let format: CompressionFormat
    let stream: [UInt8]
    let content: [UInt8]

    private init(_ name: String, _ format: CompressionFormat, _ content: [UInt8], _ base64: String) {
        testDescription = name
        self.format = format
        self.content = content
        stream = Base64.decode(base64) ?? []
    }

    static let text = Array((0..<40).map { "The feed has post \($0 * $0 % 97) of person \($0 % 13).\n" }.joined().utf8)

    static let all = [
        CompressedSample(
            "DEFLATE with dynamic codes, level 9",
            .deflate,
            text,
            """
            hdNBCgMhDIXhfU+RExSNJib3mAsU6jCrOnR6f7pNaeDtfzTmw+2YtM/5pONx0bmuDxVaO53zfa0Xlftt+wtqCGoW9BBwFngIWnqFhqJnBUsoJCtaPEPTOeMc\
            Iys0PsWywuI2PJ0jritdKMdbar7SEZN0qYMRHCO4VpGcMqJzQXStIbpREF1lRCcN0bkiut6hnVds16Cdd2QnBeEZtBNkxwPZmSE76ciOoZ05slP87QTaVWxn\
            Cu1Uf+2+
            """
        ),
        CompressedSample(
            "zlib with fixed codes",
            .zlib,
            text,
            """
            eAELyUhVSEtNTVHISCxWKMgvLlEwUMhPUyhILSrOz1Mw0OMKwVBgiKTAEJsCEyQFRtgUWCIpMMZqhRmSChNsKoxMkVSYYlNhjGyGGVZ3IrvDHJsKM2SvWGBT\
            YYEcGpZY3YEcXFgD1AjZFkPsQWqOrARroJobEYo4I0IRZ2xIKObMjAhFnaUpoagzNiYUdeYGhKLO0IhQ1JkaE4o6SzNCUWdiQjDuLA0Jx50xwbizNCEUd6YG\
            hCLPgmDcmRKKOyNzQnFnYUEo7kxNCMWdEcG4s7AkFHdmhLOdKcG4MyQcdxZmBOPOzAw17gDFCbIG
            """
        ),
        CompressedSample("zlib with a stored block", .zlib, Array("stored".utf8), "eAEBBgD5/3N0b3JlZAk8ApI="),
        CompressedSample("zlib of nothing", .zlib, [], "eNoDAAAAAAE="),
        CompressedSample(
            "zlib with synchronised parts",
            .zlib,
            Array("flushed three times".utf8),
            "eJxKyyktzkhNUQAAAAD//yrJKEpNVQAAAAD//yrJzE0tBgAAAP//AwBKiQdm"
        ),
        CompressedSample(
            "gzip, level 6",
            .gzip,
            text,
            """
            H4sIAAAAAAAAA4XTQQoDIQyF4X1PkRMUjSYm95gLFOowqzp0en+6TWng7X805sPtmLTP+aTjcdG5rg8VWjud832tF5X7bfsLaghqFvQQcBZ4CFp6hYaiZwVL\
            KCQrWjxD0znjHCMrND7FssLiNjydI64rXSjHW2q+0hGTdKmDERwjuFaRnDKic0F0rSG6URBdZUQnDdG5IrreoZ1XbNegnXdkJwXhGbQTZMcD2ZkhO+nIjqGd\
            ObJT/O0E2lVsZwrtVH/tvmQ2RC9SBQAA
            """
        ),
        CompressedSample(
            "gzip with every optional part of its header",
            .gzip,
            Array("with every optional part".utf8),
            "H4sIHwEAAAAAAwUAZXh0cmFuYW1lAGNvbW1lbnQA1RgrzyzJUEgtSy2qVMgvKMnMz0vMUShILCoBAECwLmEYAAAA"
        ),
        CompressedSample(
            "gzip with three members, one of them empty",
            .gzip,
            Array("first, second".utf8),
            """
            H4sIAAAAAAACA0vLLCou0VEAAATPzvEHAAAAH4sIAAAAAAACAwMAAAAAAAAAAAAfiwgAAAAAAAIDK05Nzs9LAQBpER+2BgAAAA==
            """
        ),
        CompressedSample(
            "zlib of many zeros",
            .zlib,
            [UInt8](repeating: 0, count: 100_000),
            """
            eNrtwTEBAAAAwqD1T20ND6AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
            AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAVwOGrwAB
            """
        ),
    ]
}
