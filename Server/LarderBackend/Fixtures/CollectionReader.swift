import LarderCoding
import LarderTime

/// Reads the user's own collections from a directory: each `NAME.json` is an array of objects with an `id`, or `db.json` is an
/// object of such arrays. An object
/// instead of an array is a document of its own.
package enum CollectionReader {
    private static let nameLengthMaximum = 64

    /// - Throws: an error that names the file, the index and the member.
    package static func read(_ directory: String) throws(FileError) -> WorldContents {
        let files: [String]
        do { files = try SourceFile.names(in: directory) } catch {
            throw FileError("\(error); larder-server init DIR writes an example")
        }
        var contents = WorldContents(origin: "collections in \(directory)", instant: WallTime(seconds: 0))
        if files.contains("db.json") {
            guard files.count == 1 else {
                throw FileError("\(directory): has db.json and other JSON files; use one or the others")
            }
            let path = directory + "/db.json"
            guard case .object(let object) = try SourceFile.json(path) else {
                throw FileError("\(path): must be an object of arrays, such as {\"todos\": [{\"id\": 1}]}")
            }
            for member in object.members {
                contents.collections.append(try collection(member.name, member.value, "\(path): \(member.name)"))
            }
        } else {
            for file in files {
                let path = directory + "/" + file
                contents.collections.append(try collection(String(file.dropLast(5)), try SourceFile.json(path), path))
            }
        }
        guard !contents.collections.isEmpty else {
            throw FileError("\(directory): has no collections; larder-server init DIR writes an example")
        }
        return contents
    }

    private static func collection(
        _ name: String,
        _ value: JSONValue,
        _ place: String
    ) throws(FileError) -> WorldContents.Collection {
        let isPlain = name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_".contains($0)) }
        guard isPlain, !name.isEmpty, name.utf8.count <= nameLengthMaximum, name.utf8.first != UInt8(ascii: "_") else {
            throw FileError("\(place): the name must be 1 to 64 letters, digits, - and _, and not begin with _")
        }
        guard !CollectionEndpoints.reserved.contains(name) else {
            throw FileError("\(place): /\(name) is a path of the server; choose another name")
        }
        var collection = WorldContents.Collection(name: name, isNumbered: true)
        if case .object = value {
            collection.isSingular = true
            collection.documents = [(DocumentID(""), value.encoded)]
            return collection
        }
        guard case .array(let elements) = value else {
            throw FileError("\(place): must be an array of objects, such as [{\"id\": 1}], or one object")
        }
        var indices: [String: Int] = [:]
        for (index, element) in elements.enumerated() {
            guard case .object(let object) = element else {
                throw FileError("\(place)[\(index)]: must be an object")
            }
            guard let member = object["id"] else {
                throw FileError("\(place)[\(index)].id: is missing; add an integer or a text")
            }
            guard let id = DocumentID(member) else {
                throw FileError("\(place)[\(index)].id: must be an integer or a text of 1 to 200 bytes")
            }
            if let first = indices.updateValue(index, forKey: id.text) {
                throw FileError(
                    "\(place)[\(index)].id: \(id.text) is also the id of [\(first)]; each document needs its own"
                )
            }
            if !id.isNumber { collection.isNumbered = false }
            collection.documents.append((id, element.encoded))
        }
        return collection
    }
}
