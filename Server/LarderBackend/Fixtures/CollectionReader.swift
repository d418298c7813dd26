import Glibc
import LarderCoding
import LarderTime

/// A file of collections that cannot be used: one sentence with the file, the index and the member.
package struct CollectionError: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// Reads the user's own collections from a directory: each `NAME.json` is an array of objects with an `id`, or `db.json` is an
/// object of such arrays. An object
/// instead of an array is a document of its own.
package enum CollectionReader {
    private static let nameLengthMaximum = 64

    /// - Throws: an error that names the file, the index and the member.
    package static func read(_ directory: String) throws(CollectionError) -> WorldContents {
        let files = try files(in: directory)
        var contents = WorldContents(origin: "collections in \(directory)", instant: WallTime(seconds: 0))
        if files.contains("db.json") {
            guard files.count == 1 else {
                throw CollectionError("\(directory): has db.json and other JSON files; use one or the others")
            }
            let path = directory + "/db.json"
            guard case .object(let object) = try value(path) else {
                throw CollectionError("\(path): must be an object of arrays, such as {\"todos\": [{\"id\": 1}]}")
            }
            for member in object.members {
                contents.collections.append(try collection(member.name, member.value, "\(path): \(member.name)"))
            }
        } else {
            for file in files {
                let path = directory + "/" + file
                contents.collections.append(try collection(String(file.dropLast(5)), try value(path), path))
            }
        }
        guard !contents.collections.isEmpty else {
            throw CollectionError("\(directory): has no collections; larder-server init DIR writes an example")
        }
        return contents
    }

    package static func files(in directory: String) throws(CollectionError) -> [String] {
        guard let handle = unsafe opendir(directory) else {
            let reason = unsafe String(cString: strerror(errno))
            throw CollectionError("\(directory): \(reason); larder-server init DIR writes an example")
        }
        defer { unsafe closedir(handle) }
        var names: [String] = []
        while let entry = unsafe readdir(handle) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                unsafe pointer.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe String(cString: $0) }
            }
            if name.hasSuffix(".json"), !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    private static func value(_ path: String) throws(CollectionError) -> JSONValue {
        let bytes: [UInt8]
        do { bytes = try FixtureReader.contents(of: path) } catch { throw CollectionError(error.description) }
        do { return try JSONParser.parse(bytes) } catch { throw CollectionError("\(path): is not JSON. \(error)") }
    }

    private static func collection(
        _ name: String,
        _ value: JSONValue,
        _ place: String
    ) throws(CollectionError) -> WorldContents.Collection {
        let isPlain = name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard isPlain, !name.isEmpty, name.utf8.count <= nameLengthMaximum, name.utf8.first != UInt8(ascii: "_") else {
            throw CollectionError("\(place): the name must be 1 to 64 letters, digits, - and _, and not begin with _")
        }
        guard !CollectionNames.reserved.contains(name) else {
            throw CollectionError("\(place): /\(name) is a path of the server; choose another name")
        }
        var collection = WorldContents.Collection(name: name, isNumbered: true)
        if case .object = value {
            collection.isSingular = true
            collection.documents = [(DocumentID(""), DocumentJSON.encode(value))]
            return collection
        }
        guard case .array(let elements) = value else {
            throw CollectionError("\(place): must be an array of objects, such as [{\"id\": 1}], or one object")
        }
        var indices: [String: Int] = [:]
        for (index, element) in elements.enumerated() {
            guard case .object(let object) = element else {
                throw CollectionError("\(place)[\(index)]: must be an object")
            }
            guard let member = object["id"] else {
                throw CollectionError("\(place)[\(index)].id: is missing; add an integer or a text")
            }
            guard let id = DocumentID(member) else {
                throw CollectionError("\(place)[\(index)].id: must be an integer or a text of 1 to 200 bytes")
            }
            if let first = indices.updateValue(index, forKey: id.text) {
                throw CollectionError(
                    "\(place)[\(index)].id: \(id.text) is also the id of [\(first)]; each document needs its own"
                )
            }
            if !id.isNumber { collection.isNumbered = false }
            collection.documents.append((id, DocumentJSON.encode(element)))
        }
        return collection
    }
}
