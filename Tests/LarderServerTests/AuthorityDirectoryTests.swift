import Foundation
import LarderTLS
import LarderTime
import TestSupport
import Testing

@testable import LarderServer

@Suite("Development authority", .oneMinute)
struct AuthorityDirectoryTests {
    private let scratch: ScratchDirectory
    private let path: String
    private let now = WallTime(seconds: 1_780_315_200)

    init() throws {
        scratch = try ScratchDirectory()
        path = scratch.path + "/data/larder"
    }

    private func authority() throws -> TLSAuthority { try AuthorityDirectory(path).authority(now: now) }

    private func mode(_ name: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path + name)
        return try #require(attributes[.posixPermissions] as? Int)
    }

    private func setMode(_ mode: Int, _ name: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path + name)
    }

    @Test func `an authority is made once, and its key is its owner's alone`() throws {
        let made = try authority()
        #expect(try authority().certificate.der == made.certificate.der)
        #expect(try mode("") == 0o700)
        #expect(try mode("/authority.key") == 0o600)
    }

    @Test(arguments: [("", 0o770), ("", 0o707), ("/authority.key", 0o640), ("/authority.pem", 0o666)])
    func `files that others can read or change are refused`(_ name: String, _ wrong: Int) throws {
        _ = try authority()
        try setMode(wrong, name)
        let error = try #require(throws: TLSError.self) { try authority() }
        #expect(error.code == .invalidSettings)
        #expect(error.description.contains("'\(path)\(name)'") && error.description.contains("chmod"), "\(error)")
        #expect(try mode(name) == wrong)
    }

    @Test func `a directory of somebody else is refused`() throws {
        let system = AuthorityDirectory(getuid() == 0 ? path : "/")
        if getuid() == 0 {
            _ = try authority()
            try FileManager.default.setAttributes([.ownerAccountID: 65_534], ofItemAtPath: path)
        }
        let error = try #require(throws: TLSError.self) { try system.authority(now: now) }
        #expect(error.description.contains("belongs to"), "\(error)")
    }

    @Test func `a stale temporary file is replaced, and the file behind a link is left alone`() throws {
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        let victim = scratch.path + "/victim"
        try Data("old".utf8).write(to: URL(fileURLWithPath: victim))
        try FileManager.default.linkItem(atPath: victim, toPath: path + "/authority.key.new")
        _ = try authority()
        #expect(FileManager.default.contents(atPath: victim) == Data("old".utf8))
        #expect(try mode("/authority.key") == 0o600)
    }
}
