"""Names of what stands in the folder of a run; imports nothing, so that looking for them costs nothing."""

CONFIG = "config.json"  # what the run is, written first
VOCABULARY = "vocabulary.txt"
TOKENIZER = "tokenizer.json"  # of a run of `fitting`
WEIGHTS = "best.weights.h5"
RESUME_POINT = "resume.npz"  # until the run is finished
TENSORBOARD = "tensorboard"
LOG = "log.txt"
PREDICTIONS = "predictions.jsonl"
TIMING = "timing.json"  # of a cell
REPORT = "report.txt"  # of a run of `fitting`
SAVEDMODEL, KERAS_FILE = "savedmodel", "model.keras"  # what `export` makes, unless told otherwise
METRICS = "metrics.json"  # written last: a run that has it is finished
