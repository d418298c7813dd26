import Foundation
import SimulationRuntime

@main enum Simulate {
    static func main() {
        let options: Options
        do { options = try Options(CommandLine.arguments.dropFirst()) } catch {
            print("simulate: \(error)\n\(Options.usage)")
            exit(2)
        }
        sim_install()
        // Two worlds: one of them has pictures. A process has one server.
        let parts = [false, true].map { hasPictures in
            var part = options
            part.seeds = options.seeds.filter { (Theme(seed: $0) == .pictures) == hasPictures }
            return part
        }
        if parts.contains(where: \.seeds.isEmpty) { exit(run(options)) }
        let process = sim_fork()
        if process == 0 { sim_exit(run(parts[0])) }
        let status = sim_wait(process)
        exit(status != 0 && options.endsAtFailure ? status : max(status, run(parts[1])))
    }

    private static func run(_ options: Options) -> Int32 {
        sim_seed(1)
        var pictures: PictureSet?
        defer { pictures?.remove() }
        do {
            if let seed = options.seeds.first, Theme(seed: seed) == .pictures {
                pictures = try PictureSet(directory: "\(Runner.directory)/larder-simulation-\(getpid())-pictures")
            }
            return Runner(options, try Stage(pictures: pictures)).run()
        } catch {
            print("simulate: the backend does not start: \(error)")
            return 2
        }
    }
}
