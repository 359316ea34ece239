"""Names of the files and folders in a run folder; imports nothing, so that importing it costs no time."""

CONFIG = "config.json"  # describes the run; written first
VOCABULARY = "vocabulary.txt"
TOKENIZER = "tokenizer.json"  # written by `app.fitting` only
SENTENCES = "data"  # folder; written by `app.fitting` only
WEIGHTS = "best.weights.h5"
BASE_WEIGHTS = "weights.npz"  # instead of the former in the folder of the base model
CHECKSUMS = "checksums.json"  # in the folder of the base model only
RESUME_POINT = "resume.npz"  # removed when the run is finished
TENSORBOARD = "tensorboard"
LOG = "log.txt"
EPOCHS = "epochs.jsonl"  # one line per validation
PREDICTIONS = "predictions.jsonl"
TIMING = "timing.json"  # cells only
REPORT = "report.txt"  # written by `app.fitting` only
SAVEDMODEL, KERAS_FILE = "savedmodel", "model.keras"  # default outputs of `export`
METRICS = "metrics.json"  # written last: a run that has it is finished
