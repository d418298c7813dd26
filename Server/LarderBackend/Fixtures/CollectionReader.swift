import LarderCoding
import LarderTime

/// Reads the user's own collections from a directory: each `NAME.json` is an array of objects with an `id`, or `db.json` is an
/// object of such arrays. An object instead of an array is a document of its own.
package struct CollectionReader {
    private static let nameLengthMaximum = 64
    private let path: String
    private let bytes: [UInt8]

    /// - Throws: an error that names the file, the line and the member.
    package static func read(_ directory: String) throws(FileError) -> WorldContents {
        let hint = "larder-server init DIR writes an example"
        let files: [String]
        do { files = try SourceFile.names(in: directory) } catch { throw FileError("\(error); \(hint)") }
        guard files.count <= 1 || !files.contains("db.json") else {
            throw FileError("\(directory): has db.json and other JSON files; use one or the others")
        }
        var contents = WorldContents(origin: "collections in \(directory)", instant: WallTime(seconds: 0))
        for file in files {
            let path = directory + "/" + file
            let reader = CollectionReader(path: path, bytes: try SourceFile.bytes(path))
            let value = try SourceFile.json(reader.bytes, named: path)
            guard file == "db.json" else {
                contents.collections.append(try reader.collection(String(file.dropLast(5)), value, at: ""))
                continue
            }
            guard let object = value.object else {
                throw reader.error("", "must be an object of arrays, such as {\"todos\": [{\"id\": 1}]}")
            }
            for (name, value) in object.members.map({ ($0.name, $0.value) }) {
                contents.collections.append(try reader.collection(name, value, at: "/" + JSONPointer.escape(name)))
            }
        }
        guard !contents.collections.isEmpty else { throw FileError("\(directory): has no collections; \(hint)") }
        return contents
    }

    private func error(_ pointer: String, _ detail: String) -> FileError {
        FileError(path, bytes, at: pointer, detail)
    }

    private func collection(_ name: String, _ value: JSONValue, at pointer: String) throws(FileError)
        -> WorldContents.Collection
    {
        let isPlain = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) }
        guard isPlain, (1...Self.nameLengthMaximum).contains(name.utf8.count), !name.hasPrefix("_") else {
            throw error(pointer, "must have a name of 1 to 64 letters, digits, - and _, which does not begin with _")
        }
        guard !CollectionEndpoints.reserved.contains(name) else {
            throw error(pointer, "must have another name, because /\(name) is a path of the server")
        }
        var collection = WorldContents.Collection(name: name, isNumbered: true)
        if let object = value.object {
            collection.isSingular = true
            collection.documents = [(DocumentID(""), object)]
            return collection
        }
        guard let elements = value.array else {
            throw error(pointer, "must be an array of objects, such as [{\"id\": 1}], or one object")
        }
        var indices: [String: Int] = [:]
        for (index, element) in elements.enumerated() {
            let place = "\(pointer)/\(index)"
            guard let object = element.object else { throw error(place, "must be an object") }
            guard let id = object["id"].flatMap({ DocumentID($0) }) else {
                throw error(place + "/id", "must be an integer or a text of 1 to 200 bytes")
            }
            if let first = indices.updateValue(index, forKey: id.text) {
                throw error(place + "/id", "is also that of \(pointer)/\(first); each document needs its own")
            }
            if id.json.integer == nil { collection.isNumbered = false }
            collection.documents.append((id, object))
        }
        return collection
    }
}
