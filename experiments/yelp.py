"""Fills blanks in Yelp reviews for one mask rate and number of blanks, and prints the paper's row and ours.

Paper: Text Infilling (Zhu, Hu, Xing 2019), section "Varying Mask Rates and #Blanks" and its appendix. It prints:

Mask rate  Blanks  Metric      Template  Seq2Seq      GAN  Self-attn
      30%       1  BLEU          63.916   69.097   68.470     71.104
      30%       1  Perplexity         -  107.480  144.127     38.304
      30%       1  Human Eval         -    1.950    1.775      2.275
      30%       2  BLEU          42.233   64.174   64.337     65.914
      30%       2  Perplexity         -   43.044   36.704     21.028
      30%       2  Human Eval         -    1.838    1.975      2.188
      40%       1  BLEU          56.838   61.309   61.778     63.543
      40%       1  Perplexity         -  202.714  230.569     44.864
      40%       1  Human Eval         -    2.075    1.865      2.055
      40%       2  BLEU          38.279   55.460   55.326     59.192
      40%       2  Perplexity         -   59.877   70.195     25.914
      40%       2  Human Eval         -    2.005    1.900      2.045
      50%       1  BLEU          44.369   48.865   48.861      51.55
      50%       1  Perplexity         -  244.862  287.415     43.688
      50%       1  Human Eval         -    1.725    1.863      2.412
      50%       2  BLEU          32.498   42.613   42.535     44.418
      50%       2  Perplexity         -   99.421  107.558     32.397
      50%       2  Human Eval         -    1.875    1.913      2.238

Command:
    python -m experiments.yelp --mask_rate=0.4 --blanks=2 --data_dir=FOLDER_THAT_CONTAINS_yelp/

Expected: BLEU of Template as in the paper (within 0.1, as it depends on the vocabulary). With the preset laptop, seed 1
and the stand-in train file, BLEU and perplexity at 50% and one blank: 49.8 and 51.6 for Seq2Seq, 49.1 and 53.7 for GAN,
51.7 and 37.0 for Self-attn; at 40% and two blanks: 54.8 and 29.2, 55.5 and 30.3, 59.4 and 20.7.
Duration on 2 cores: 25 to 45 minutes per model with the preset laptop (an estimate is printed at the start); about 4
minutes with smoke (made-up sentences). The preset full has the paper's sizes and needs a GPU.
"""

import dataclasses

from absl.flags import FlagValues

from experiments.cells import experiment, flags
from experiments.tables import paper


def run(values: FlagValues) -> None:
    """Runs the row that the flags select and prints it."""
    row = paper.yelp(values.mask_rate, values.blanks)
    experiment.run_and_show(values, dataclasses.replace(row, masking=values.masking))


def define_flags(values: FlagValues) -> None:
    """Defines the flags of this command."""
    flags.define_setting(values)
    flags.define_common(values, "yelp")


if __name__ == "__main__":
    flags.main(run, define_flags, __doc__)
