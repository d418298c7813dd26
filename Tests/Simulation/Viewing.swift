import Foundation
import Larder
import LarderDemo
import LarderImages
import LarderStorage
import LarderTime

/// The limits of the pictures of a device, which it reaches.
struct PictureLimits: Codable, Sendable {
    let memoryBytes: Int
    let diskBytes: Int64

    init(_ random: inout SeededGenerator) {
        memoryBytes = random.uniform(in: 12..<64) << 10
        diskBytes = Int64(random.uniform(in: 16..<96)) << 10
    }
}

/// What people do with pictures, and what must hold.
extension Device {
    /// The memory for pixels at present, as the app has set it.
    private func setPictureMemory(_ bytes: Int, _ images: ImagePipeline) {
        let whole = images.configuration.memoryBytesMaximum
        images.setMemoryShare(Double(bytes) / Double(whole))
        pictureBytesMaximum = bytes
    }

    func limitPictures() {
        guard let limits = simulation.plan.pictureLimits, let client else { return }
        setPictureMemory(limits.memoryBytes, client.images)
    }

    func performWithPictures(_ act: Act, _ choice: UInt64, _ client: LarderClient) async throws {
        var random = SeededGenerator(seed: choice)
        pictureScripts += 1
        defer { noteEndOfPictures() }
        switch act {
        case .showPictures: await showPictures(&random, client.images)
        case .prefetchPictures:
            let tasks = (0..<random.uniform(in: 2..<9)).map { _ in
                var request = draw(&random).request
                request.priority = .prefetch
                return client.images.task(for: request)
            }
            await simulation.wait(random.uniform(in: 0..<6_000))
            for task in tasks { task.cancel() }
        case .cancelPictures:
            client.images.cancelPending(below: random.unit() < 0.5 ? .high : .highest)
        case .pressPictures: await pressPictures(&random, client.images)
        default:
            let images = client.images
            if random.unit() < 0.3 { await images.removeAll() } else { images.trimMemory(toShare: random.unit()) }
        }
    }

    /// A rendition and a request for it.
    struct Wanted: Sendable {
        let rendition: PictureSet.Rendition
        var request: ImageRequest
    }

    private func draw(_ random: inout SeededGenerator) -> Wanted {
        let all = PictureSet.all
        var wanted = wanted(all[random.uniform(in: 0..<all.count)])
        let priorities = ImageRequest.Priority.allCases
        wanted.request.priority = priorities[random.uniform(in: 0..<priorities.count)]
        if random.unit() < 0.4 {
            let side = [5, 16, 40][random.uniform(in: 0..<3)]
            wanted.request.target = ImageTarget(width: side, height: side)
        }
        if random.unit() < 0.1 { wanted.request.cache = .skipMemoryRead }
        wanted.request.wantsPreviews = random.unit() < 0.2
        return wanted
    }

    private func wanted(_ rendition: PictureSet.Rendition) -> Wanted {
        Wanted(rendition: rendition, request: ImageRequest(url: server + rendition.path))
    }

    /// Scrolls over pictures: some leave the screen before they are there.
    private func showPictures(_ random: inout SeededGenerator, _ images: ImagePipeline) async {
        let rows = (0..<random.uniform(in: 2..<9)).map { _ in
            (draw(&random), patience: random.unit() < 0.3 ? random.uniform(in: 0..<1_500) : nil)
        }
        await withTaskGroup(of: Void.self) { group in
            for (wanted, patience) in rows {
                group.addTask { [self] in
                    guard let patience else { return await show(wanted, images) }
                    let task = images.task(for: wanted.request)
                    await simulation.wait(patience)
                    task.cancel()
                    simulation.coverage.count("pictures left before they were shown")
                }
            }
        }
    }

    private func show(_ wanted: Wanted, _ images: ImagePipeline) async {
        let url = wanted.request.url
        let generation = generation
        do throws(ImageError) {
            let image = try await images.image(for: wanted.request)
            guard generation == self.generation else { return }
            judge(image, wanted)
        } catch {
            simulation.coverage.count("pictures \(error.code.rawValue)")
            simulation.note("\(name): \(url) \(error.code.rawValue)")
        }
    }

    /// Memory is short for some time.
    private func pressPictures(_ random: inout SeededGenerator, _ images: ImagePipeline) async {
        guard let limits = simulation.plan.pictureLimits else { return }
        let generation = generation
        setPictureMemory(random.unit() < 0.5 ? 0 : limits.memoryBytes / 4, images)
        images.setQuality(0.5)
        images.pausePrefetch()
        judgePictures()
        await simulation.wait(random.uniform(in: 100..<20_000))
        images.setQuality(1)
        images.resumePrefetch()
        if generation == self.generation { setPictureMemory(limits.memoryBytes, images) }
    }

    private func noteEndOfPictures() {
        pictureScripts -= 1
        picturesIdleSince = simulation.clock.uptime
    }

    // MARK: Oracles

    /// Nothing is loaded that nobody waits for.
    func judgeIdlePictures() {
        guard simulation.plan.pictureLimits != nil, let client, pictureScripts == 0,
            simulation.clock.uptime - picturesIdleSince > .seconds(2)
        else { return }
        let loads = client.images.workload.loads
        simulation.expect(loads == 0, .pictures, "\(name): \(loads) downloads that nobody waits for")
    }

    /// A picture that is shown is the wanted one, and not larger than its target.
    private func judge(_ image: DecodedImage, _ wanted: Wanted) {
        let rendition = wanted.rendition
        simulation.coverage.count("pictures shown")
        func expect(_ holds: Bool, _ what: @autoclosure () -> String) {
            simulation.expect(holds, .pictures, "\(name): \(rendition.path) \(what())")
        }
        expect(image.sourceWidth == rendition.side, "has \(image.sourceWidth) pixels a row")
        let side = min(rendition.side, wanted.request.target?.width ?? .max)
        expect(image.width <= side && image.height <= side, "is shown with \(image.width) pixels a row")
        let reds = Set(stride(from: 0, to: image.pixels.count, by: 4).map { image.pixels[$0] })
        expect(reds == [rendition.red], "is shown as \(reds.sorted().prefix(3)), not \(rendition.red)")
        guard wanted.request.target == nil, image.width == rendition.side else { return }
        let isWhole = (0..<image.width * image.height).allSatisfy { index in
            Int(image.pixels[index * 4 + 1]) == index / image.width
                && Int(image.pixels[index * 4 + 2]) == index % image.width
        }
        expect(isWhole, "is shown with wrong pixels")
    }

    /// Pixels and files have bounds.
    func judgePictures() {
        guard let limits = simulation.plan.pictureLimits, let client else { return }
        let bytes = client.images.memoryCost
        simulation.expect(
            bytes <= pictureBytesMaximum,
            .bounds,
            "\(name): \(bytes) of \(pictureBytesMaximum) bytes of pixels"
        )
        if pictureBytesMaximum > 0, bytes * 10 >= pictureBytesMaximum * 8 {
            simulation.coverage.count("almost bytes of pixels")
        }
        guard !machine.hasDiskTrouble, !hasDied, let disk = client.images.configuration.disk,
            let stored = try? disk.statistics()
        else { return }
        let onDisk = Int(stored.bytes)
        let limit = Int(limits.diskBytes)
        simulation.expect(onDisk <= limit, .bounds, "\(name): \(onDisk) of \(limit) bytes of pictures on the disk")
        if onDisk * 10 >= limit * 8 { simulation.coverage.count("almost bytes of pictures on the disk") }
    }

    /// After a sign-out or the end of the app nothing is loaded any more, and no pixels are held.
    func judgeEnded(_ images: ImagePipeline, erased: Bool) {
        guard simulation.plan.pictureLimits != nil else { return }
        @Sendable func look(_ when: String) {
            let work = images.workload
            simulation.expect(
                work.loads == 0 && work.decodes == 0,
                .pictures,
                "\(name): \(work.loads) downloads and \(work.decodes) decodes \(when)"
            )
            guard erased else { return }
            let bytes = images.memoryCost
            simulation.expect(bytes == 0, .privacy, "\(name): \(bytes) bytes of pixels \(when)")
        }
        look("at the end of the app")
        simulation.start("\(name) pictures after the end") { [self] in
            await simulation.wait(20_000)
            look("20 s after the end of the app")
        }
    }

    /// Without faults each picture can be shown, whatever has happened to it before.
    func showAllPictures() async {
        guard simulation.plan.pictureLimits != nil, let client else { return }
        pictureScripts += 1
        defer { noteEndOfPictures() }
        for rendition in PictureSet.all where rendition.side < 48 {
            let wanted = wanted(rendition)
            // The server may have asked for a pause.
            for attempt in 1...3 {
                client.images.forgetFailures()
                do throws(ImageError) {
                    let image = try await client.images.image(for: wanted.request)
                    judge(image, wanted)
                    break
                } catch {
                    guard attempt == 3 else {
                        await simulation.wait(60_000)
                        continue
                    }
                    simulation.find(.pictures, "\(name): \(rendition.path) cannot be shown in the end: \(error)")
                }
            }
        }
    }
}

extension Simulation {
    /// Files of pictures are damaged while no process has them open.
    func damagePictures(_ device: Device, _ random: inout SeededGenerator) async {
        let devices = devices.filter { $0.machine === device.machine }
        for device in devices where device.isRunning {
            device.kill()
            device.bury()
        }
        guard devices.allSatisfy({ !$0.isRunning }) else { return }
        let directory =
            DiskStore.directory(forAccount: device.handle, in: device.machine.directory) + "/images"
        let names = (FileManager.default.enumerator(atPath: directory)?.compactMap { $0 as? String } ?? []).sorted()
        for name in names {
            guard let file = FileHandle(forUpdatingAtPath: "\(directory)/\(name)") else { continue }
            do {
                let count = try file.seekToEnd()
                let start = count > 100 ? UInt64(random.uniform(in: 0..<Int(count))) : 0
                if count > 0, !name.hasSuffix(".lock") {
                    try file.seek(toOffset: start)
                    try file.write(contentsOf: Data(repeating: UInt8(random.uniform(in: 0..<256)), count: 40))
                    note("\(device.name): images/\(name) is damaged from byte \(start)")
                }
                try file.close()
            } catch { find(.disk, "\(name) cannot be damaged: \(error)") }
        }
        await wait(random.uniform(in: 10..<1_000))
        for device in devices { reopen(device) }
    }
}
